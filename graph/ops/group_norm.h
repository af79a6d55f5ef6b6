// Written by scripts/collect.py from graph/ops/group_norm.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef group_norm_op;
/// Normalizes each sample's channels in `groups` groups by the statistics of the group: y = (x - mean) / sqrt(variance
/// + eps) * weight + bias, x [N, C, …], weight and bias [C].
TUTTI_API Value group_norm(Value x, int64_t groups, Value weight = {}, Value bias = {}, double eps = 1e-5);

}  // namespace tutti
