// Evaluates ops and graphs on the host with the records' own float64 definitions: the truth of every test, the
// reference device, and constant folding.
#pragma once
#include <map>

#include "graph/op.h"

namespace tutti {

/// The results of one op: by its expr, its reference or its decomposition, whichever comes first. Inside an op every
/// number is a float64; results are rounded to their dtype. Inputs must fit (see infer_types).
std::vector<Tensor> evaluate(const OpDef& op, std::span<const Tensor> in, const Attrs& a);

/// The results of a scalar expression over inputs that broadcast to `shape`; `exact`: rounded after every instruction.
std::vector<Tensor> evaluate(const Expr& e, std::span<const Tensor> in, const Shape& shape, bool exact);

/// The values of `outputs`, given a tensor for every feed and state they depend on. Throws Error naming a missing one.
std::vector<Tensor> evaluate(const Graph& g, const std::map<std::string, Tensor>& inputs, const Values& outputs);

/// Row-major bytes of `type` as a Tensor, and back.
inline Tensor tensor_from(const TensorType& type, const void* data) {
  Tensor t(type);
  for (size_t i = 0; i < t.at.size(); ++i) t.at[i] = load_element(type.dtype, data, i);
  return t;
}
inline void store_tensor(const Tensor& t, void* data) {
  for (size_t i = 0; i < t.at.size(); ++i) store_element(t.type.dtype, data, i, t.at[i]);
}

}  // namespace tutti
