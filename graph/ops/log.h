// Written by scripts/collect.py from graph/ops/log.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef log_op;
/// y = ln x
inline Value log(Value x) { return call(log_op, {x}); }

}  // namespace tutti
