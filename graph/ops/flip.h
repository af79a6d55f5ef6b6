// Written by scripts/collect.py from graph/ops/flip.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef flip_op;
/// Reverses the order of elements along these axes.
inline Value flip(Value x, Ints axes) { return call(flip_op, {x}, {{"axes", std::move(axes)}}); }

}  // namespace tutti
