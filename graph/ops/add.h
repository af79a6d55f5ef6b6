// Written by scripts/collect.py from graph/ops/add.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef add_op;
/// y = a + b
inline Value operator+(Value a, Value b) { return call(add_op, {a, b}); }
inline Value operator+(Value a, double b) { return a + a.like(b); }
inline Value operator+(double a, Value b) { return b.like(a) + b; }

}  // namespace tutti
