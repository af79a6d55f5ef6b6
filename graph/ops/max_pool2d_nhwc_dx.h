// Written by scripts/collect.py from graph/ops/max_pool2d_nhwc_dx.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef max_pool2d_nhwc_dx_op;

}  // namespace tutti
