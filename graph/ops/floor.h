// Written by scripts/collect.py from graph/ops/floor.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef floor_op;
/// y = the largest integer <= x; the gradient is 0
inline Value floor(Value x) { return call(floor_op, {x}); }

}  // namespace tutti
