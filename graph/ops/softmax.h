// Written by scripts/collect.py from graph/ops/softmax.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef softmax_op;
/// y = exp(x) / (sum of exp(x) over `axis`), computed from x minus its maximum
inline Value softmax(Value x, int64_t axis = -1) { return call(softmax_op, {x}, {{"axis", Ints{axis}}}); }

}  // namespace tutti
