// Written by scripts/collect.py from graph/ops/batch_norm_dx.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef batch_norm_dx_op;

}  // namespace tutti
