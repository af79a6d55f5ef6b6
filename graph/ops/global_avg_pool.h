// Written by scripts/collect.py from graph/ops/global_avg_pool.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef global_avg_pool_op;
/// The mean over height and width, which are kept with size 1: [N, C, H, W] to [N, C, 1, 1].
inline Value global_avg_pool(Value x) { return call(global_avg_pool_op, {x}); }

}  // namespace tutti
