// Written by scripts/collect.py from graph/ops/sqrt.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef sqrt_op;
/// y = sqrt(x)
inline Value sqrt(Value x) { return call(sqrt_op, {x}); }

}  // namespace tutti
