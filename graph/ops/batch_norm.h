// Written by scripts/collect.py from graph/ops/batch_norm.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef batch_norm_op;
/// x [N, C, …] normalized by the statistics of each channel over the batch (PyTorch in training): y = (x - mean) /
/// sqrt(variance + eps) * weight + bias, then mean [C] and the biased variance [C]. The caller updates running
/// statistics: running += momentum (statistic - running), where PyTorch multiplies the variance by n / (n - 1), n =
/// elements per channel. For f16 and bf16 the statistics are f32, weight and bias have x's dtype or f32.
/// `batch_norm_eval` takes given statistics.
TUTTI_API Values batch_norm(Value x, Value weight = {}, Value bias = {}, double eps = 1e-5);

}  // namespace tutti
