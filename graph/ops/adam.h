// Written by scripts/collect.py from graph/ops/adam.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef adam_op;
/// One step of Adam (Kingma & Ba 2015; PyTorch's epsilon and L2 weight decay): {new p, new m, new v}. `lr` and
/// the bias corrections c1 = 1 - beta1^t, c2 = 1 - beta2^t are scalars. Results have the dtypes of p, m and v.
inline Values adam(Value p, Value g, Value m, Value v, Value lr, Value c1, Value c2, double beta1 = 0.9,
                   double beta2 = 0.999, double epsilon = 1e-8, double weight_decay = 0) {
  return call_all(adam_op, {p, g, m, v, lr, c1, c2},
                  {{"beta1", Reals{beta1}},
                   {"beta2", Reals{beta2}},
                   {"epsilon", Reals{epsilon}},
                   {"weight_decay", Reals{weight_decay}}});
}

}  // namespace tutti
