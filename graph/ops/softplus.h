// Written by scripts/collect.py from graph/ops/softplus.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef softplus_op;
/// y = ln(1 + e^x), without overflow
inline Value softplus(Value x) { return call(softplus_op, {x}); }

}  // namespace tutti
