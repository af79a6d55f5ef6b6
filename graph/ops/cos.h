// Written by scripts/collect.py from graph/ops/cos.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef cos_op;
/// y = cos x
inline Value cos(Value x) { return call(cos_op, {x}); }

}  // namespace tutti
