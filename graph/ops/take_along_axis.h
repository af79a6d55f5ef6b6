// Written by scripts/collect.py from graph/ops/take_along_axis.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef take_along_axis_op;
/// y[…, i, …] = x[…, index[…, i, …], …] for every element, which is PyTorch's gather; Tutti's `gather` takes whole
/// slices. `index` (i32) may be smaller than x, and along `axis` also larger; indices outside [0, size) are clamped.
TUTTI_API Value take_along_axis(Value x, Value index, int64_t axis);

}  // namespace tutti
