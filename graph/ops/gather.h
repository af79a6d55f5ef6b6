// Written by scripts/collect.py from graph/ops/gather.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef gather_op;
/// y = x with `axis` replaced by the axes of `index` (i32, any shape): y[…, i…, …] = x[…, index[i…], …]. Indices
/// outside [0, size) are clamped: check labels and tokens beforehand.
inline Value gather(Value x, Value index, int64_t axis = 0) {
  return call(gather_op, {x, index}, {{"axis", Ints{axis}}});
}

}  // namespace tutti
