// Written by scripts/collect.py from graph/ops/sign.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef sign_op;
/// y = -1, 0 or 1, the sign of x; the gradient is 0
inline Value sign(Value x) { return call(sign_op, {x}); }

}  // namespace tutti
