// Written by scripts/collect.py from graph/ops/expm1.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef expm1_op;
/// y = e^x - 1, accurate near 0
inline Value expm1(Value x) { return call(expm1_op, {x}); }

}  // namespace tutti
