// Written by scripts/collect.py from graph/ops/quantized_matmul.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef quantized_matmul_op;
/// y = x Wᵀ for x [rows, inputs] and quantized weights W = dequantize(quants, scales, mins, bits, group), [features,
/// inputs]; y has the dtype of x. Kernels need not round W to that dtype.
TUTTI_API Value quantized_matmul(Value x, Value quants, Value scales, Value mins, int64_t bits, int64_t group = 32);

}  // namespace tutti
