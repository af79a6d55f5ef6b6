// Written by scripts/collect.py from graph/ops/atan.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef atan_op;
/// y = arctan x, in [-pi/2, pi/2]; in f32 within 2.5 ulp
inline Value atan(Value x) { return call(atan_op, {x}); }

}  // namespace tutti
