// The arithmetic of f16 and bf16: in f32, rounded once at the end (docs/decisions/0011).
#pragma once
#include <functional>

#include "graph/op.h"

namespace tutti {

/// f16 or bf16: computed in f32.
inline bool holds_narrow(const Value& v) { return v && is_narrow(v.dtype()); }
/// The dtype in which values of `t` are computed, and v in it.
inline DType wide(DType t) { return is_narrow(t) ? DType::f32 : t; }
Value wide(Value v);

/// What `f` gives for operands with every f16 and bf16 cast to f32; its f32 results are cast back. What a rule reads in
/// `out` was rounded once already: rules that lose digits by that compute it again from `in`, where cse finds it for
/// f32.
Values rounded_once(const std::function<Values(const Call&)>& f, const Call& c);
Values rounded_once(const std::function<Values(const VjpContext&)>& f, const VjpContext& g);
/// The same for a function that is no op: a composition of public ops.
Value rounded_once(const Values& in, const std::function<Value(const Values&)>& f);
/// The same for a composition of one value.
Value rounded_once(Value x, const std::function<Value(Value)>& f);

/// A record's decomposition or gradient rule that computes so: .vjp = in_f32<vjp>.
template <Values (*f)(const Call&)>
Values in_f32(const Call& c) {
  return rounded_once(f, c);
}
template <Values (*f)(const VjpContext&)>
Values in_f32(const VjpContext& g) {
  return rounded_once(f, g);
}

}  // namespace tutti
