// Written by scripts/collect.py from graph/ops/exp.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef exp_op;
/// y = e^x
inline Value exp(Value x) { return call(exp_op, {x}); }

}  // namespace tutti
