// Written by scripts/collect.py from graph/ops/rms_norm_dx.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef rms_norm_dx_op;

}  // namespace tutti
