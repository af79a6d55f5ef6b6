// Written by scripts/collect.py from graph/ops/var.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef var_op;
/// The variance over `axes` (all if empty): the sum of squares of x minus its mean, divided by the number of elements
/// minus `correction`; NaN if both are 0.
inline Value var(Value x, Ints axes = {}, bool keep = false, int64_t correction = 1) {
  return call(var_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}, {"correction", Ints{correction}}});
}

}  // namespace tutti
