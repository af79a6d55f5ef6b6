// Written by scripts/collect.py from graph/ops/argmax.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef argmax_op;
/// The i32 index of the largest element over `axes` (all if empty), in row-major order over the reduced axes; of equal
/// elements the first; NaN counts as the largest.
inline Value argmax(Value x, Ints axes = {}, bool keep = false) {
  return call(argmax_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}

}  // namespace tutti
