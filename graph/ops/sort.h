// Written by scripts/collect.py from graph/ops/sort.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef sort_op;
/// {values, indices (i32)} of x sorted along `axis`; the sort is stable. NaN counts as the largest. `count` >= 0:
/// returns only the first `count` elements.
inline Values sort(Value x, int64_t axis = -1, bool descending = false, int64_t count = -1) {
  return call_all(sort_op, {x}, {{"axis", Ints{axis}}, {"descending", Ints{descending}}, {"count", Ints{count}}});
}

}  // namespace tutti
