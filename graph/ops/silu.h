// Written by scripts/collect.py from graph/ops/silu.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef silu_op;
/// y = x / (1 + e^-x), also called swish
inline Value silu(Value x) { return call(silu_op, {x}); }

}  // namespace tutti
