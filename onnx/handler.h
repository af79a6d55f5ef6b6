// Converts ONNX ops to nodes of a graph: a table of handlers by op name, one file of onnx/ops per family.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "graph/functions.h"
#include "graph/graph.h"
#include "onnx/lower.h"
#include "onnx/model.h"

namespace tutti::onnx {

class Lowering;

/// A handler's view of the node that it lowers.
class Context {
 public:
  Context(Lowering& lowering, const Node& node) : lowering_(lowering), node_(node) {}

  Graph& graph() const;
  int64_t opset() const;
  const LowerOptions& options() const;
  const Node& node() const { return node_; }
  size_t inputs() const { return node_.inputs.size(); }
  size_t outputs() const { return node_.outputs.size(); }
  /// Whether input `k` is present.
  bool has(size_t k) const { return k < node_.inputs.size() && !node_.inputs[k].empty(); }
  /// Whether anything reads output `k`.
  bool wants(size_t k) const;

  /// Input `k` as a value; throws if it was omitted.
  Value in(size_t k) const;
  /// The same; null if it was omitted.
  Value maybe(size_t k) const { return has(k) ? in(k) : Value{}; }
  Values all() const;
  /// The elements of an input that is known when the graph is built, row-major. Throws Unsupported if it depends on
  /// data.
  Reals numbers(size_t k, const char* what) const;
  /// Integers, here and in attributes, are clamped to [-2^31, 2^31]: larger than any axis, and products of two do not
  /// overflow.
  Ints integers(size_t k, const char* what) const;
  int64_t integer(size_t k, const char* what) const;
  double number(size_t k, const char* what) const;
  /// The elements of a value; nullopt if they depend on data.
  std::optional<Reals> elements(Value x) const;
  /// Whether numbers() would succeed.
  bool known(size_t k) const;
  /// The element type that input `k` has in the file, if it is narrower than its dtype (INT8 and INT16 are i32).
  std::optional<ElementType> narrow_type(size_t k) const;

  bool has_attribute(const std::string& name) const { return node_.attributes.contains(name); }
  int64_t i(const std::string& name, int64_t otherwise) const;
  double f(const std::string& name, double otherwise) const;
  std::string s(const std::string& name, const std::string& otherwise) const;
  Ints ints(const std::string& name, const Ints& otherwise = {}) const;
  Reals reals(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
  const HostTensor& tensor(const std::string& name) const;
  const Body& body(const std::string& name) const;
  /// The outputs of a subgraph whose inputs have these values; no value: an omitted input.
  Values run(const Body& body, const Values& inputs) const;
  /// Integers that are an input in newer opsets and an attribute in older ones; nullopt if both are omitted.
  std::optional<Ints> integers_or_attribute(size_t k, const std::string& name) const;

  /// "model.onnx: node 3 'x' (Conv)".
  std::string place() const;
  /// Throws Unsupported: "model.onnx: node 3 'x' (Conv): WHAT".
  [[noreturn]] void unsupported(const std::string& what) const;
  /// Throws Error(invalid) with the same prefix, for a violation of the specification.
  [[noreturn]] void bad(const std::string& what) const;

 private:
  template <class T>
  const T* attribute(const std::string& name) const;
  Lowering& lowering_;
  const Node& node_;
};

/// Returns one value per output, or fewer if the last ones are not supported.
using Handler = std::function<Values(const Context&)>;
using Table = std::map<std::string, Handler>;

// The families; each is a file of onnx/ops.
void add_activations(Table& t);
void add_arithmetic(Table& t);
void add_comparisons(Table& t);
void add_reductions(Table& t);
void add_products(Table& t);
void add_convolutions(Table& t);
void add_pools(Table& t);
void add_resampling(Table& t);
void add_norms(Table& t);
void add_shapes(Table& t);
void add_slices(Table& t);
void add_indexing(Table& t);
void add_constants(Table& t);
void add_recurrence(Table& t);
void add_losses(Table& t);
void add_control(Table& t);
void add_quantized(Table& t);
void add_classical(Table& t);

/// The handlers of all families, by name; those of other domains than ONNX's own by "domain.name".
const Table& handlers();

// ---- helpers of several families

/// A tensor of the file as a constant of the graph (see `narrowed`).
Value constant_from(Graph& graph, const HostTensor& t, const std::string& place);
/// The axis of a tensor with `rank` axes; negative ones count from the end.
int64_t axis_of(const Context& c, int64_t axis, size_t rank);
/// Indices, where negative ones count from the end of an axis of that size.
Value from_end(Value index, int64_t size);
/// NumPy's matmul: a vector is a row on the left and a column on the right; its axis is removed from the result.
Value product(Value a, Value b);
/// Numbers of the node as a constant i32[n].
Value integers_value(const Context& c, const Ints& numbers);
/// Casts x to f32 if it is not a float.
Value as_float(Value x);

}  // namespace tutti::onnx
