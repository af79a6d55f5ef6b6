// Written by scripts/collect.py from graph/ops/tanh.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef tanh_op;
/// y = tanh x
inline Value tanh(Value x) { return call(tanh_op, {x}); }

}  // namespace tutti
