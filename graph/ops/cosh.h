// Written by scripts/collect.py from graph/ops/cosh.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef cosh_op;
/// y = (e^x + e^-x) / 2; in f32 within 4 ulp
inline Value cosh(Value x) { return call(cosh_op, {x}); }

}  // namespace tutti
