// Written by scripts/collect.py from graph/ops/layer_norm_dx.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef layer_norm_dx_op;

}  // namespace tutti
