// Written by scripts/collect.py from graph/ops/atan2.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef atan2_op;
/// The angle of the point (x, y) in [-pi, pi]; signed zeros and infinities as in C
inline Value atan2(Value y, Value x) { return call(atan2_op, {y, x}); }

}  // namespace tutti
