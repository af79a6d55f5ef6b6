// Written by scripts/collect.py from graph/ops/less_equal.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef less_equal_op;
/// y = a <= b
inline Value less_equal(Value a, Value b) { return call(less_equal_op, {a, b}); }

}  // namespace tutti
