// Written by scripts/collect.py from graph/ops/max_pool2d_nhwc.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef max_pool2d_nhwc_op;
/// max_pool2d of channels-last images x [N, H, W, C]. Throws Error for ceil_mode.
TUTTI_API Value max_pool2d_nhwc(Value x, const Pool2dOptions& o = {});

}  // namespace tutti
