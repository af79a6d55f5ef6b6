// Written by scripts/collect.py from graph/ops/avg_pool2d.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef avg_pool2d_op;
/// y = the average of every window of x [N, C, H, W]. With `count_include_pad` padding counts as zeros, otherwise it is
/// excluded from the average.
TUTTI_API Value avg_pool2d(Value x, const Pool2dOptions& o = {});

}  // namespace tutti
