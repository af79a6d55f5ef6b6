// Written by scripts/collect.py from graph/ops/dequantize.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef dequantize_op;
/// Dequantizes blocks of 32 along the last axis: y = scale q + min, f32 (f64 for f64 scales). `quants`: u8, one q per
/// byte (8 bits) or two (4 bits: byte j of a block's 16 holds q[j] in its low nibble and q[j + 16] in its high one, as
/// in GGUF's q4_1); `scales` and `mins`: f16 or f32, one per `group` of 32 or 16 elements.
TUTTI_API Value dequantize(Value quants, Value scales, Value mins, int64_t bits, int64_t group = 32);

}  // namespace tutti
