// Written by scripts/collect.py from graph/ops/sin.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef sin_op;
/// y = sin x
inline Value sin(Value x) { return call(sin_op, {x}); }

}  // namespace tutti
