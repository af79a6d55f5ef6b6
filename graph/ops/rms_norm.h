// Written by scripts/collect.py from graph/ops/rms_norm.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef rms_norm_op;
/// y = x * rstd * weight, rstd = 1 / sqrt(mean of x^2 + eps) over the last axes, of sizes `normalized_shape`. `eps`
/// defaults to the machine epsilon of the statistics' dtype, which is f32 for f16 and bf16.
TUTTI_API Value rms_norm(Value x, Ints normalized_shape, Value weight = {}, std::optional<double> eps = {});

}  // namespace tutti
