// Written by scripts/collect.py from graph/ops/pad.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef pad_op;
/// x with `low` elements of `value` before, `high` after and `interior` between adjacent elements, one entry (>= 0) per
/// axis; an empty `interior` means none. Use slice for cropping.
inline Value pad(Value x, Ints low, Ints high, Ints interior = {}, double value = 0) {
  return call(
      pad_op, {x},
      {{"low", std::move(low)}, {"high", std::move(high)}, {"interior", std::move(interior)}, {"value", Reals{value}}});
}

}  // namespace tutti
