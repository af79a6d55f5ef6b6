// Written by scripts/collect.py from graph/ops/uniform.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef uniform_op;
/// f32 numbers drawn uniformly from [low, high), or low if both are equal; see random_bits.
TUTTI_API Value random_uniform(Value seed, Value step, Shape shape, int64_t stream, double low = 0, double high = 1);

}  // namespace tutti
