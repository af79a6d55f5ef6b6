// Written by scripts/collect.py from graph/ops/sum.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef sum_op;
/// Sum over `axes` (all if empty); `keep` keeps them with size 1.
inline Value sum(Value x, Ints axes = {}, bool keep = false) {
  return call(sum_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}
/// Sums over broadcast dimensions so that the result has `shape`: the adjoint of broadcast.
TUTTI_API Value sum_to(Value x, const Shape& shape);

}  // namespace tutti
