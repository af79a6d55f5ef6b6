// Written by scripts/collect.py from graph/ops/min.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef min_op;
/// Smallest element over `axes` (all if empty); NaN if any is NaN; equal elements share the gradient equally.
inline Value min(Value x, Ints axes = {}, bool keep = false) {
  return call(min_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}

}  // namespace tutti
