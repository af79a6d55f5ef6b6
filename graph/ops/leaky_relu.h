// Written by scripts/collect.py from graph/ops/leaky_relu.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef leaky_relu_op;
/// y = x where x > 0, else alpha x
inline Value leaky_relu(Value x, double alpha = 0.01) { return call(leaky_relu_op, {x}, {{"alpha", Reals{alpha}}}); }

}  // namespace tutti
