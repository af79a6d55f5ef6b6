// Written by scripts/collect.py from graph/ops/mean.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef mean_op;
/// Mean over `axes` (all if empty); `keep` keeps them with size 1. Floats only; NaN over no elements.
inline Value mean(Value x, Ints axes = {}, bool keep = false) {
  return call(mean_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}

}  // namespace tutti
