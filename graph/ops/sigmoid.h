// Written by scripts/collect.py from graph/ops/sigmoid.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef sigmoid_op;
/// y = 1 / (1 + e^-x)
inline Value sigmoid(Value x) { return call(sigmoid_op, {x}); }

}  // namespace tutti
