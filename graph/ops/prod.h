// Written by scripts/collect.py from graph/ops/prod.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef prod_op;
/// Product over `axes` (all if empty); `keep` keeps them with size 1. 1 over no elements.
inline Value prod(Value x, Ints axes = {}, bool keep = false) {
  return call(prod_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}

}  // namespace tutti
