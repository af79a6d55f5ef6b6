// Written by scripts/collect.py from graph/ops/bernoulli.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef bernoulli_op;
/// bool, true with probability p; see random_bits.
TUTTI_API Value random_bernoulli(Value seed, Value step, Shape shape, int64_t stream, double p);

}  // namespace tutti
