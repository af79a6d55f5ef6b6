// Computes f16 and bf16 in f32, rounding once at the end (docs/decisions/0011).
#pragma once
#include <functional>

#include "graph/op.h"

namespace tutti {

/// Whether v is f16 or bf16, which are computed in f32.
inline bool holds_narrow(const Value& v) { return v && is_narrow(v.dtype()); }
/// The dtype in which values of `t` are computed, and v cast to it.
inline DType wide(DType t) { return is_narrow(t) ? DType::f32 : t; }
Value wide(Value v);

/// Calls `f` with every f16 and bf16 operand cast to f32 and casts its f32 results back. Values of `out` that a
/// gradient rule reads have already been rounded; rules that would lose precision recompute them from `in`, and CSE
/// removes the duplicate in f32.
Values rounded_once(const std::function<Values(const Call&)>& f, const Call& c);
Values rounded_once(const std::function<Values(const VjpContext&)>& f, const VjpContext& g);
/// The same for a composition of public ops, which is not an op itself.
Value rounded_once(const Values& in, const std::function<Value(const Values&)>& f);
/// The same for a composition with one operand.
Value rounded_once(Value x, const std::function<Value(Value)>& f);

/// A decomposition or gradient rule computed this way: .vjp = in_f32<vjp>.
template <Values (*f)(const Call&)>
Values in_f32(const Call& c) {
  return rounded_once(f, c);
}
template <Values (*f)(const VjpContext&)>
Values in_f32(const VjpContext& g) {
  return rounded_once(f, g);
}

}  // namespace tutti
