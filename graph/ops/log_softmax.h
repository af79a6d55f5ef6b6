// Written by scripts/collect.py from graph/ops/log_softmax.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef log_softmax_op;
/// y = x - log(sum of exp(x) over `axis`), computed from x minus its maximum
inline Value log_softmax(Value x, int64_t axis = -1) { return call(log_softmax_op, {x}, {{"axis", Ints{axis}}}); }

}  // namespace tutti
