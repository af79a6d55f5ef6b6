// Written by scripts/collect.py from graph/ops/transpose.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef transpose_op;
/// Axis i of y is axis perm[i] of x; perm is a permutation of the axes (negative: from the end).
inline Value transpose(Value x, Ints perm) { return call(transpose_op, {x}, {{"perm", std::move(perm)}}); }

}  // namespace tutti
