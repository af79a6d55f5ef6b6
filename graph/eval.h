// Evaluates ops and graphs on the host by the float64 definitions in their records: the reference of the tests, the
// reference device, and constant folding.
#pragma once
#include <map>

#include "graph/op.h"

namespace tutti {

/// The results of one op, computed by its expr, reference or decomposition, whichever is defined first. Arithmetic is
/// in float64; results are rounded to their dtype. Inputs must be valid (see infer_types).
std::vector<Tensor> evaluate(const OpDef& op, std::span<const Tensor> in, const Attrs& a);

/// A float32 instruction of exact numerics over n elements: y = code(a, b). Returns false if float64 arithmetic rounded
/// once gives the same.
using ExactInstruction = bool (*)(uint16_t code, double* y, const double* a, const double* b, size_t n);

/// The results of a scalar expression over inputs that broadcast to `shape`; `exact`: rounds after every instruction.
/// `instruction`: for exact numerics.
std::vector<Tensor> evaluate(const Expr& e, std::span<const Tensor> in, const Shape& shape, bool exact,
                             ExactInstruction instruction = nullptr);

/// The values of `outputs`. `inputs` holds every feed and state that they depend on; throws Error naming a missing one.
std::vector<Tensor> evaluate(const Graph& g, const std::map<std::string, Tensor>& inputs, const Values& outputs);

/// Converts between row-major bytes of `type` and a Tensor.
inline Tensor tensor_from(const TensorType& type, const void* data) {
  Tensor t(type);
  for (size_t i = 0; i < t.at.size(); ++i) t.at[i] = load_element(type.dtype, data, i);
  return t;
}
inline void store_tensor(const Tensor& t, void* data) {
  for (size_t i = 0; i < t.at.size(); ++i) store_element(t.type.dtype, data, i, t.at[i]);
}

}  // namespace tutti
