// Written by scripts/collect.py from graph/ops/max.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef max_op;
/// Largest element over `axes` (all if empty); NaN if any is NaN; equal elements share the gradient equally.
inline Value max(Value x, Ints axes = {}, bool keep = false) {
  return call(max_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}

}  // namespace tutti
