// Written by scripts/collect.py from graph/ops/equal.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef equal_op;
/// y = a == b
inline Value equal(Value a, Value b) { return call(equal_op, {a, b}); }

}  // namespace tutti
