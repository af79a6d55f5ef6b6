// Written by scripts/collect.py from graph/ops/avg_pool2d_nhwc.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef avg_pool2d_nhwc_op;
/// avg_pool2d of channels-last images x [N, H, W, C]. Throws Error for ceil_mode and divisor_override.
TUTTI_API Value avg_pool2d_nhwc(Value x, const Pool2dOptions& o = {});

}  // namespace tutti
