// Written by scripts/collect.py from graph/ops/elu.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef elu_op;
/// y = x where x > 0, else alpha (e^x - 1); alpha >= 0
inline Value elu(Value x, double alpha = 1) { return call(elu_op, {x}, {{"alpha", Reals{alpha}}}); }

}  // namespace tutti
