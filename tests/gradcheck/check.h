// Compares an op's gradient with central differences of its value, in float64.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "graph/eval.h"
#include "graph/op.h"

namespace tutti::test {

/// One sample of one op with everything drawn.
struct Case {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::string what;            ///< "matmul, sample 2, seed 1", for failures
  std::vector<Tensor> inputs;  ///< floats are f64
  Types results;
  std::vector<size_t> float_inputs, float_results;
  std::vector<Tensor> cotangents;  ///< one per float result
  size_t elements() const;         ///< of all inputs
};

/// Per float input, its gradient's elements.
using Gradient = std::vector<std::vector<double>>;

/// TUTTI_SEED, or 1.
uint64_t seed();
/// A case from tensors given by hand.
Case make_case(const OpDef& op, std::vector<Tensor> inputs, const Attrs& attrs, size_t which, const std::string& what);
/// The case of op.samples[which], or nothing with the reason why its gradient cannot be compared.
std::optional<Case> draw_case(const OpDef& op, size_t which, std::string& why_not);

/// The gradient by central differences, for each float result by itself.
std::vector<Gradient> numeric_gradients(const Case& c);
/// The sum of the gradients that flow from the results of which `from` is true.
Gradient add_up(const std::vector<Gradient>& per_result, const std::vector<bool>& from);
/// The gradient by the rule of `def` (c.op, or a copy of it with another rule). `wants` and `from` select among the
/// float inputs and results; what is not wanted is empty, what nothing reaches is zeros.
Gradient rule_gradient(const Case& c, const OpDef& def, const std::vector<bool>& wants, const std::vector<bool>& from);

double norm(const std::vector<double>& x);
/// |got - expected| / (|expected| + 0.001) in the Euclidean norm; NaN when either holds one or the sizes differ.
double relative_error(const std::vector<double>& got, const std::vector<double>& expected);

constexpr double tolerance = 1e-6;  ///< float64 differences are good to about 1e-9
constexpr double zero_norm = 1e-7;  ///< a numeric gradient below this is zero

/// The op with a rule that multiplies the gradient of one input by a constant. One at a time.
OpDef break_rule(const OpDef& op, size_t input, double factor);

/// Compares gradients of gradients with differences of gradients. Returns the largest relative error over inputs and
/// cotangents; nothing, with the reason, where a rule uses an op without a gradient.
std::optional<double> second_order_error(const Case& c, std::string& why_not);

}  // namespace tutti::test
