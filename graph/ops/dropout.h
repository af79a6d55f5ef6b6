// Written by scripts/collect.py from graph/ops/dropout.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef dropout_op;
/// Each element is 0 with probability p, else x / (1 - p); x itself if p = 0. The mask is a pure function of `seed`
/// (u32[2]), `step` (i32 scalar) and `stream`; the gradient draws the same mask again.
TUTTI_API Value dropout(Value x, Value seed, Value step, double p, int64_t stream = 0);

}  // namespace tutti
