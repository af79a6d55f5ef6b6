// Written by scripts/collect.py from graph/ops/mse.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef mse_op;
/// The squared error (x - target)^2, reduced: "mean" over all elements, "sum" or "none".
inline Value mse(Value x, Value target, const std::string& reduction = "mean") {
  return call(mse_op, {x, target}, {{"reduction", reduction}});
}

}  // namespace tutti
