// Written by scripts/collect.py from graph/ops/abs.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef abs_op;
/// y = |x|
inline Value abs(Value x) { return call(abs_op, {x}); }

}  // namespace tutti
