// Written by scripts/collect.py from graph/ops/sgd_momentum.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef sgd_momentum_op;
/// One step of SGD with momentum (PyTorch's; m starts at 0): {new p, new m}. `lr` is a scalar; results have the
/// dtypes of p and m.
inline Values sgd_momentum(Value p, Value g, Value m, Value lr, double momentum, bool nesterov = false,
                           double weight_decay = 0) {
  return call_all(sgd_momentum_op, {p, g, m, lr},
                  {{"momentum", Reals{momentum}}, {"nesterov", Ints{nesterov}}, {"weight_decay", Reals{weight_decay}}});
}

}  // namespace tutti
