// Written by scripts/collect.py from graph/ops/acos.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef acos_op;
/// y = arccos x, in [0, pi]; NaN where |x| > 1; in f32 within 3.5 ulp
inline Value acos(Value x) { return call(acos_op, {x}); }

}  // namespace tutti
