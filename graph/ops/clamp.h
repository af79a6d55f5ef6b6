// Written by scripts/collect.py from graph/ops/clamp.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef clamp_op;
/// y = x clamped to [low, high]; bounds may be infinite. The gradient is 1 between the bounds, 0 on them and outside.
inline Value clamp(Value x, double low, double high) {
  return call(clamp_op, {x}, {{"low", Reals{low}}, {"high", Reals{high}}});
}

}  // namespace tutti
