// An op is defined once, by one record in its own file under graph/ops/.
//
// The build collects from that folder: every `const OpDef NAME_op{` into the registry, and what stands between "//
// public" and "// end of public" (the op's public C++ functions) into the header graph/ops/NAME.h.
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

/// A tensor of the float64 references: every element is held as a double, rounded to `type.dtype` between nodes.
struct TUTTI_API Tensor {
  TensorType type;
  std::vector<double> at;
  explicit Tensor(TensorType t = {}) : type(std::move(t)), at(static_cast<size_t>(num_elements(type.shape))) {}
  const Shape& shape() const { return type.shape; }
};

/// What a decomposition gets.
struct TUTTI_API Call {
  Graph& graph;
  std::span<const Value> in;
  const Attrs& a;
};

/// What a gradient rule (vector-Jacobian product) gets: the node's inputs and results, and the cotangent of each
/// result.
struct TUTTI_API VjpContext {
  Graph& graph;
  std::span<const Value> in, out;
  std::span<const Value> d;  ///< null where nothing flows back (never all of them)
  const Attrs& a;
  std::vector<bool> wants;  ///< per input: whether its gradient is needed; rules may skip the others
  /// The cotangent of result k, zeros where nothing flows back.
  Value cotangent(size_t k) const;
};

/// The values from which one input of a sample is drawn.
struct TUTTI_API Range {
  double low = -1, high = 1;
};

/// One case that drives gradcheck, parity, conformance, bench and the documentation. Inputs are drawn from a counter-
/// based generator: floats uniformly in the range, integers as whole numbers in [low, high], bool as fair coins.
struct TUTTI_API Sample {
  std::vector<Shape> shapes;
  double low = -1, high = 1;  ///< range of every input that `ranges` does not name
  Attrs attrs = {};
  std::vector<Range> ranges = {};  ///< per input, in order; may be shorter than the inputs
  std::vector<DType> dtypes = {};  ///< per input; f32 unless named
  std::vector<double> kinks = {};  ///< points where the gradient jumps; inputs keep 0.02 away from them
  bool distinct = false;           ///< float inputs are a shuffled grid: no two elements of one tensor are near
};

/// The definition of one op. Its value is the first present of expr, reference, decompose.
struct TUTTI_API OpDef {
  std::string name;
  int version = 1;
  std::string doc;                  ///< one line: the formula, shapes where they need saying
  std::vector<std::string> inputs;  ///< a last name ending in "..." takes any number
  std::vector<std::string> results = {"y"};
  Attrs attrs = {};    ///< every attribute with its default
  bool exact = false;  ///< elementwise only: rounded to its dtype after every instruction, everywhere
  /// Result types; throws Error saying what does not fit. Elementwise ops need none (broadcasting, dtype of the expr).
  Types (*infer)(std::span<const TensorType> in, const Attrs& a) = nullptr;
  Exs (*expr)(In x, const Attrs& a) = nullptr;  ///< one scalar per result
  void (*reference)(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) = nullptr;  ///< `out` is zeroed
  Values (*decompose)(const Call& c) = nullptr;  ///< in public ops, one value per result
  /// One gradient per input, null where none. Derived from expr or decompose where absent.
  Values (*vjp)(const VjpContext& g) = nullptr;
  std::vector<Sample> samples = {};

  bool elementwise() const { return expr != nullptr; }
  bool variadic() const { return !inputs.empty() && inputs.back().ends_with("..."); }
};

/// Every op, sorted by name.
TUTTI_API std::span<const OpDef* const> all_ops();
/// The op of that name, or nullptr.
TUTTI_API const OpDef* find_op(std::string_view name);
/// The scalar expression for inputs of these dtypes. Throws Error where dtypes do not fit.
TUTTI_API Expr expr_of(const OpDef& op, std::span<const DType> inputs, const Attrs& a);
/// Result types of the op, with an Error that names op and input types when they do not fit.
TUTTI_API Types infer_types(const OpDef& op, std::span<const TensorType> in, const Attrs& a);

/// Adds a node with one result (or takes the first).
TUTTI_API Value call(const OpDef& op, const std::vector<Value>& in, const Attrs& a = {});
/// Adds a node and returns all its results.
TUTTI_API Values call_all(const OpDef& op, const std::vector<Value>& in, const Attrs& a = {});

/// The gradients of one node by the op's rule, derived where the record has none. Throws Error if it has no gradient.
TUTTI_API Values pull_back(const OpDef& op, const VjpContext& g);
/// The gradient of an elementwise op by differentiating its scalar expression, in public ops.
TUTTI_API Values derive_from_expr(const OpDef& op, const VjpContext& g);
/// The gradient of what the op decomposes into.
TUTTI_API Values derive_from_decomposition(const OpDef& op, const VjpContext& g);

}  // namespace tutti
