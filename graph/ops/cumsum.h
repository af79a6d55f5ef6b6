// Written by scripts/collect.py from graph/ops/cumsum.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef cumsum_op;
/// y = the inclusive cumulative sum of x along `axis`; `reverse`: from the end.
inline Value cumsum(Value x, int64_t axis, bool reverse = false) {
  return call(cumsum_op, {x}, {{"axis", Ints{axis}}, {"reverse", Ints{reverse}}});
}

}  // namespace tutti
