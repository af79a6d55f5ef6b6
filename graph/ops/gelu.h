// Written by scripts/collect.py from graph/ops/gelu.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef gelu_op;
/// y = x Phi(x), Phi the normal distribution's CDF; `approximate` is "none" (erf) or "tanh" (Hendrycks & Gimpel 2016)
inline Value gelu(Value x, std::string approximate = "none") {
  return call(gelu_op, {x}, {{"approximate", std::move(approximate)}});
}

}  // namespace tutti
