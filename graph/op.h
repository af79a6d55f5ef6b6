// An op is defined once, by one record in its own file under graph/ops/.
//
// The build collects from that folder every `const OpDef NAME_op{` into the registry, and the code between "// public"
// and "// end of public" (the op's public C++ functions) into the header graph/ops/NAME.h.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "graph/expr.h"
#include "graph/graph.h"

namespace tutti {

using Types = std::vector<TensorType>;

/// A tensor of the float64 references: elements are doubles, rounded to `type.dtype` after each node.
struct TUTTI_API Tensor {
  TensorType type;
  std::vector<double> at;
  explicit Tensor(TensorType t = {}) : type(std::move(t)), at(static_cast<size_t>(num_elements(type.shape))) {}
  const Shape& shape() const { return type.shape; }
};

/// Arguments of a decomposition.
struct TUTTI_API Call {
  Graph& graph;
  std::span<const Value> in;
  const Attrs& a;
};

/// Arguments of a gradient rule (vector-Jacobian product): the node's inputs and results, and the cotangent of each
/// result.
struct TUTTI_API VjpContext {
  Graph& graph;
  std::span<const Value> in, out;
  std::span<const Value> d;  ///< null if no gradient flows to that result (never all of them)
  const Attrs& a;
  std::vector<bool> wants;  ///< per input: whether its gradient is needed; rules may skip the others
  /// The cotangent of result k; zeros if it is null.
  Value cotangent(size_t k) const;
};

/// The range that the elements of one input are drawn from.
struct TUTTI_API Range {
  double low = -1, high = 1;
};

/// One test case, used by gradcheck, parity, conformance, bench and the documentation. Inputs are drawn by a
/// counter-based generator: floats uniformly in the range, integers in [low, high], bool with equal probability.
struct TUTTI_API Sample {
  std::vector<Shape> shapes;
  double low = -1, high = 1;  ///< range of all inputs without an entry in `ranges`
  Attrs attrs = {};
  std::vector<Range> ranges = {};  ///< per input, in order; may be shorter than the inputs
  std::vector<DType> dtypes = {};  ///< per input; f32 by default
  std::vector<double> kinks = {};  ///< points where the gradient is discontinuous; inputs keep a distance of 0.02
  bool distinct = false;           ///< float inputs are a shuffled grid: no two elements of a tensor are close
};

/// The definition of one op. Its value is computed by the first of expr, reference, decompose that is present.
struct TUTTI_API OpDef {
  std::string name;
  int version = 1;
  std::string doc;                  ///< one line: the formula, and shapes if needed
  std::vector<std::string> inputs;  ///< a last name ending in "..." takes any number of inputs
  std::vector<std::string> results = {"y"};
  Attrs attrs = {};    ///< every attribute with its default
  bool exact = false;  ///< elementwise ops only: rounds to the dtype after every instruction, on every device
  /// Other ops: docs/EXACT.md fixes the order of the operations, so the op stays as it is in exact mode, in which ops
  /// without this are decomposed.
  bool ordered = false;
  bool moves = false;  ///< ordered; the decomposition only moves elements too, and serves where a device declines
  /// Result types; throws Error if inputs or attributes are invalid. Not needed for elementwise ops (broadcasting,
  /// dtype of the expr).
  Types (*infer)(std::span<const TensorType> in, const Attrs& a) = nullptr;
  Exs (*expr)(In x, const Attrs& a) = nullptr;  ///< one scalar per result
  void (*reference)(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) = nullptr;  ///< `out` is zeroed
  Values (*decompose)(const Call& c) = nullptr;  ///< uses public ops; one value per result
  /// One gradient per input, or null. If absent, derived from expr or decompose.
  Values (*vjp)(const VjpContext& g) = nullptr;
  std::vector<Sample> samples = {};

  bool elementwise() const { return expr != nullptr; }
  bool variadic() const { return !inputs.empty() && inputs.back().ends_with("..."); }
};

/// Every op, sorted by name.
TUTTI_API std::span<const OpDef* const> all_ops();
/// The op of that name, or nullptr.
TUTTI_API const OpDef* find_op(std::string_view name);
/// The scalar expression for inputs of these dtypes. Throws Error if the dtypes do not match.
TUTTI_API Expr expr_of(const OpDef& op, std::span<const DType> inputs, const Attrs& a);
/// Result types of the op. Throws Error naming op and input types if they do not match.
TUTTI_API Types infer_types(const OpDef& op, std::span<const TensorType> in, const Attrs& a);

/// Adds a node and returns its first result.
TUTTI_API Value call(const OpDef& op, const std::vector<Value>& in, const Attrs& a = {});
/// Adds a node and returns all its results.
TUTTI_API Values call_all(const OpDef& op, const std::vector<Value>& in, const Attrs& a = {});

/// The gradients of one node by the op's rule, or a derived rule if it has none. Throws Error if the op has no
/// gradient.
TUTTI_API Values pull_back(const OpDef& op, const VjpContext& g);
/// The gradient of an elementwise op by differentiating its scalar expression, in public ops.
TUTTI_API Values derive_from_expr(const OpDef& op, const VjpContext& g);
/// The gradient of the op's decomposition.
TUTTI_API Values derive_from_decomposition(const OpDef& op, const VjpContext& g);

}  // namespace tutti
