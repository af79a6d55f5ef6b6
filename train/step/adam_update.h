// Shared code of Adam and its variants.
#pragma once
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/expm1.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "train/step/update.h"

namespace tutti::adam_family {

template <class Options>
std::vector<Hyperparameter> hyperparameters(Options& o) {
  return {{"lr", "Learning rate", &o.lr},
          {"beta1", "Decay of the first moment", &o.beta1},
          {"beta2", "Decay of the second moment", &o.beta2},
          {"epsilon", "Added to the root of the second moment", &o.epsilon},
          {"weight-decay", "Weight decay", &o.weight_decay}};
}

template <class Options>
void check(const Options& o) {
  check_share("beta1", o.beta1);
  check_share("beta2", o.beta2);
}

/// 1 - beta^t = -expm1(t ln beta) of both betas, accurate for small t and beta near 1.
template <class Options>
Values corrections(Graph&, const Options& o, Value lr, Value step) {
  Value t = cast(step, lr.dtype()) + 1;
  return {-expm1(t * std::log(o.beta1)), -expm1(t * std::log(o.beta2))};
}

/// Updates the first and second moment with the gradient `g`, stores and returns them.
template <class Options>
std::pair<Value, Value> moments(const Update& u, Value g, const Options& o) {
  Value m = o.beta1 * u.moment("m") + (1 - o.beta1) * g, v = o.beta2 * u.moment("v") + (1 - o.beta2) * (g * g);
  u.set_moment("m", m);
  u.set_moment("v", v);
  return {m, v};
}

template <class Options>
void update(const Update& u, const OpDef& op, const Options& o) {
  Attrs attrs = {{"beta1", Reals{o.beta1}},
                 {"beta2", Reals{o.beta2}},
                 {"epsilon", Reals{o.epsilon}},
                 {"weight_decay", Reals{u.decay(o.weight_decay)}}};
  Values out = call_all(op, {u.p, u.d, u.moment("m"), u.moment("v"), u.lr, u.shared[0], u.shared[1]}, attrs);
  u.set_parameter(out[0]);
  u.set_moment("m", out[1]);
  u.set_moment("v", out[2]);
}

}  // namespace tutti::adam_family
