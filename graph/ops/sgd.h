// Written by scripts/collect.py from graph/ops/sgd.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef sgd_op;
/// One step of gradient descent: the new p. `lr` is a scalar; results have the dtype of p.
inline Value sgd(Value p, Value g, Value lr, double weight_decay = 0) {
  return call(sgd_op, {p, g, lr}, {{"weight_decay", Reals{weight_decay}}});
}

}  // namespace tutti
