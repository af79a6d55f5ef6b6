// Written by scripts/collect.py from graph/ops/log1p.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef log1p_op;
/// y = ln(1 + x), accurate near 0
inline Value log1p(Value x) { return call(log1p_op, {x}); }

}  // namespace tutti
