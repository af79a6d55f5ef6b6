// Written by scripts/collect.py from graph/ops/logical_not.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef logical_not_op;
/// y = not x (bool)
inline Value logical_not(Value x) { return call(logical_not_op, {x}); }

}  // namespace tutti
