// Written by scripts/collect.py from graph/ops/normal.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef normal_op;
/// f32 numbers from the normal distribution; uses the streams `stream` and `stream` + 2^31, so `stream` < 2^31. See
/// random_bits.
TUTTI_API Value random_normal(Value seed, Value step, Shape shape, int64_t stream, double mean = 0, double std = 1);

}  // namespace tutti
