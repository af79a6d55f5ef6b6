// Written by scripts/collect.py from graph/ops/logical_or.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef logical_or_op;
/// y = a or b (bool; bitwise on integers)
inline Value logical_or(Value a, Value b) { return call(logical_or_op, {a, b}); }

}  // namespace tutti
