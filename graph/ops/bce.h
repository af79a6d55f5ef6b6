// Written by scripts/collect.py from graph/ops/bce.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef bce_op;
/// The binary cross-entropy of probabilities x against targets in [0, 1], reduced: "mean" over all elements, "sum" or
/// "none". Logarithms are clamped to at least -100. Prefer bce_with_logits, which is accurate near 0 and 1.
inline Value bce(Value x, Value target, const std::string& reduction = "mean") {
  return call(bce_op, {x, target}, {{"reduction", reduction}});
}

}  // namespace tutti
