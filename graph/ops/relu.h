// Written by scripts/collect.py from graph/ops/relu.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef relu_op;
/// y = max(x, 0); the gradient at 0 is 0
inline Value relu(Value x) { return call(relu_op, {x}); }

}  // namespace tutti
