// Written by scripts/collect.py from graph/ops/minimum.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef minimum_op;
/// y = min(a, b); NaN if either is; equal operands share the gradient; if one is NaN both get it
inline Value minimum(Value a, Value b) { return call(minimum_op, {a, b}); }

}  // namespace tutti
