// Written by scripts/collect.py from graph/ops/select.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef select_op;
/// y = condition ? a : b, with broadcasting; condition is bool
inline Value select(Value condition, Value a, Value b) { return call(select_op, {condition, a, b}); }

}  // namespace tutti
