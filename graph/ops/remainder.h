// Written by scripts/collect.py from graph/ops/remainder.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef remainder_op;
/// a - b floor(a / b), with the sign of b: fmod(a, b), plus b if the signs differ, as in PyTorch. For b = 0 NaN; a for
/// integers.
inline Value remainder(Value a, Value b) { return call(remainder_op, {a, b}); }
inline Value remainder(Value a, double b) { return remainder(a, a.like(b)); }

}  // namespace tutti
