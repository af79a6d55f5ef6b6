// Written by scripts/collect.py from graph/ops/hardtanh.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef hardtanh_op;
/// y = x clamped to [low, high]; the gradient is 0 outside and on the bounds
inline Value hardtanh(Value x, double low = -1, double high = 1) {
  return call(hardtanh_op, {x}, {{"low", Reals{low}}, {"high", Reals{high}}});
}

}  // namespace tutti
