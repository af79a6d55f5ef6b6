// Written by scripts/collect.py from graph/ops/logsumexp.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef logsumexp_op;
/// y = log(sum of exp(x) over `axes`, all if empty), computed from x minus its maximum; -inf over no elements
inline Value logsumexp(Value x, Ints axes = {}, bool keep = false) {
  return call(logsumexp_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}

}  // namespace tutti
