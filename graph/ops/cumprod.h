// Written by scripts/collect.py from graph/ops/cumprod.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef cumprod_op;
/// y = the inclusive cumulative product of x along `axis`. The gradient is correct if x contains zeros.
inline Value cumprod(Value x, int64_t axis) { return call(cumprod_op, {x}, {{"axis", Ints{axis}}}); }

}  // namespace tutti
