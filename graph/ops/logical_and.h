// Written by scripts/collect.py from graph/ops/logical_and.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef logical_and_op;
/// y = a and b (bool; bitwise on integers)
inline Value logical_and(Value a, Value b) { return call(logical_and_op, {a, b}); }

}  // namespace tutti
