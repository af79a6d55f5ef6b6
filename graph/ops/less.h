// Written by scripts/collect.py from graph/ops/less.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef less_op;
/// y = a < b
inline Value less(Value a, Value b) { return call(less_op, {a, b}); }

}  // namespace tutti
