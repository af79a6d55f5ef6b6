// Written by scripts/collect.py from graph/ops/asin.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef asin_op;
/// y = arcsin x, in [-pi/2, pi/2]; NaN where |x| > 1; in f32 within 3 ulp
inline Value asin(Value x) { return call(asin_op, {x}); }

}  // namespace tutti
