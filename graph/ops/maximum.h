// Written by scripts/collect.py from graph/ops/maximum.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef maximum_op;
/// y = max(a, b); NaN if either is; equal operands share the gradient; if one is NaN both get it
inline Value maximum(Value a, Value b) { return call(maximum_op, {a, b}); }

}  // namespace tutti
