// LAMB.
#pragma once
#include <cmath>
#include <vector>

#include "core/base/export.h"
#include "graph/functions.h"
#include "graph/ops/cast.h"
#include "graph/ops/expm1.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/select.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sum.h"
#include "train/step/adam_update.h"

namespace tutti {

/// You et al., "Large batch optimization for deep learning" (2020): Adam's step r = m^ / (sqrt(v^) + epsilon) +
/// weight_decay p, scaled per parameter by |p| / |r| (1 where either is 0).
struct TUTTI_API Lamb {
  static constexpr const char* name = "lamb";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 1e-2;

  std::vector<Hyperparameter> hyperparameters() { return adam_family::hyperparameters(*this); }
  /// Throws Error(invalid).
  void check() const { adam_family::check(*this); }
  Values shared(Graph& g, Value lr_now, Value step) const { return adam_family::corrections(g, *this, lr_now, step); }
  void update(const Update& u) const {
    auto [m, v] = adam_family::moments(u, u.d, *this);
    Value r = m / u.shared[0] / (sqrt(v / u.shared[1]) + epsilon) + u.decay(weight_decay) * u.p;
    Value size = sqrt(sum(u.p * u.p)), step = sqrt(sum(r * r));
    Value usable = logical_and(size > 0, step > 0);
    Value trust = select(usable, size / select(usable, step, step.like(1)), size.like(1));
    u.set_parameter(u.p - u.lr * trust * r);
  }
};

}  // namespace tutti
