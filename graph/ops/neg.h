// Written by scripts/collect.py from graph/ops/neg.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef neg_op;
/// y = -x
inline Value operator-(Value x) { return call(neg_op, {x}); }

}  // namespace tutti
