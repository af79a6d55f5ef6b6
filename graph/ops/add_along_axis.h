// Written by scripts/collect.py from graph/ops/add_along_axis.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef add_along_axis_op;
/// The adjoint of take_along_axis: zeros with size `size` along `axis`, then y[…, index[…, i, …], …] += updates[…, i,
/// …] for every element, in the order of i. `index` (i32) has the shape of `updates`; indices outside [0, size) are
/// clamped.
inline Value add_along_axis(Value index, Value updates, int64_t size, int64_t axis) {
  return call(add_along_axis_op, {index, updates}, {{"size", Ints{size}}, {"axis", Ints{axis}}});
}

}  // namespace tutti
