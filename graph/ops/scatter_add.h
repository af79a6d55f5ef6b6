// Written by scripts/collect.py from graph/ops/scatter_add.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef scatter_add_op;
/// The adjoint of gather: zeros with size `size` along `axis`, then y[…, index[i…], …] += updates[…, i…, …]. The axes
/// of `index` (i32) are those of `updates` starting at `axis`; a negative `axis` counts from the end of y's axes.
/// Indices outside [0, size) are clamped.
inline Value scatter_add(Value index, Value updates, int64_t size, int64_t axis = 0) {
  return call(scatter_add_op, {index, updates}, {{"size", Ints{size}}, {"axis", Ints{axis}}});
}

}  // namespace tutti
