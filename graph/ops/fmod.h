// Written by scripts/collect.py from graph/ops/fmod.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef fmod_op;
/// a - b trunc(a / b), exact, with the sign of a: C's fmod for floats, % for integers. For b = 0 NaN; a for integers.
inline Value fmod(Value a, Value b) { return call(fmod_op, {a, b}); }

}  // namespace tutti
