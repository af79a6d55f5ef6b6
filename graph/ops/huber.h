// Written by scripts/collect.py from graph/ops/huber.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef huber_op;
/// r^2 / 2 where |r| <= delta, else delta (|r| - delta / 2), for r = x - target; reduced: "mean" over all elements,
/// "sum" or "none".
inline Value huber(Value x, Value target, double delta = 1, const std::string& reduction = "mean") {
  return call(huber_op, {x, target}, {{"delta", Reals{delta}}, {"reduction", reduction}});
}

}  // namespace tutti
