// Written by scripts/collect.py from graph/ops/erf.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef erf_op;
/// y = 2/sqrt(pi) * integral from 0 to x of e^(-t^2) dt
inline Value erf(Value x) { return call(erf_op, {x}); }

}  // namespace tutti
