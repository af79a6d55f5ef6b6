// Written by scripts/collect.py from graph/ops/pow.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef pow_op;
/// y = a^b for a >= 0 (or an integer b)
inline Value pow(Value a, Value b) { return call(pow_op, {a, b}); }

}  // namespace tutti
