// Written by scripts/collect.py from graph/ops/bce_with_logits.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef bce_with_logits_op;
/// The binary cross-entropy of sigmoid(x) against targets in [0, 1], reduced: "mean" over all elements, "sum" or
/// "none".
inline Value bce_with_logits(Value x, Value target, const std::string& reduction = "mean") {
  return call(bce_with_logits_op, {x, target}, {{"reduction", reduction}});
}

}  // namespace tutti
