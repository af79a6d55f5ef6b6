// Written by scripts/collect.py from graph/ops/layer_norm.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef layer_norm_op;
/// y = (x - mean) * rstd * weight + bias, with mean and rstd = 1 / sqrt(variance + eps) over the last axes, of sizes
/// `normalized_shape`, which is also the shape of weight and bias. For f16 and bf16 the statistics are f32, weight and
/// bias have x's dtype or f32.
TUTTI_API Value layer_norm(Value x, Ints normalized_shape, Value weight = {}, Value bias = {}, double eps = 1e-5);

}  // namespace tutti
