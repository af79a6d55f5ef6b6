// Written by scripts/collect.py from graph/ops/adamw.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef adamw_op;
/// One step of AdamW (Loshchilov & Hutter 2019, PyTorch's order: p decays first): {new p, new m, new v}. `lr` and
/// the bias corrections c1 = 1 - beta1^t, c2 = 1 - beta2^t are scalars. Results have the dtypes of p, m and v.
inline Values adamw(Value p, Value g, Value m, Value v, Value lr, Value c1, Value c2, double beta1 = 0.9,
                    double beta2 = 0.999, double epsilon = 1e-8, double weight_decay = 0.01) {
  return call_all(adamw_op, {p, g, m, v, lr, c1, c2},
                  {{"beta1", Reals{beta1}},
                   {"beta2", Reals{beta2}},
                   {"epsilon", Reals{epsilon}},
                   {"weight_decay", Reals{weight_decay}}});
}

}  // namespace tutti
