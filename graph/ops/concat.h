// Written by scripts/collect.py from graph/ops/concat.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef concat_op;
/// Joins tensors along `axis`; their other dimensions and dtype must agree. At least one tensor.
inline Value concat(const Values& x, int64_t axis) { return call(concat_op, x, {{"axis", Ints{axis}}}); }

}  // namespace tutti
