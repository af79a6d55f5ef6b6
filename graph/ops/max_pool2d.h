// Written by scripts/collect.py from graph/ops/max_pool2d.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef max_pool2d_op;
/// y = the largest element of every window of x [N, C, H, W], and its tap index ky * width + kx (i32); of equal
/// elements the first, never the padding.
TUTTI_API Values max_pool2d_with_index(Value x, const Pool2dOptions& o = {});
inline Value max_pool2d(Value x, const Pool2dOptions& o = {}) { return max_pool2d_with_index(x, o)[0]; }

}  // namespace tutti
