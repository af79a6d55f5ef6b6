// Written by scripts/collect.py from graph/ops/rsqrt.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef rsqrt_op;
/// y = 1 / sqrt(x)
inline Value rsqrt(Value x) { return call(rsqrt_op, {x}); }

}  // namespace tutti
