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
#include "train/update.h"

namespace tutti {

/// You et al., "Large batch optimization for deep learning" (2020): Adam's step r = m^ / (sqrt(v^) + epsilon) +
/// weight_decay p, scaled per parameter by |p| / |r| (1 where either is 0).
struct TUTTI_API Lamb {
  static constexpr const char* name = "lamb";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 1e-2;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "Learning rate", &lr},
            {"beta1", "Decay of the first moment", &beta1},
            {"beta2", "Decay of the second moment", &beta2},
            {"epsilon", "Keeps the update finite", &epsilon},
            {"weight-decay", "Weight decay", &weight_decay}};
  }
  /// Throws Error(invalid).
  void check() const {
    check_share("beta1", beta1);
    check_share("beta2", beta2);
  }
  Values shared(Graph&, Value lr_now, Value step) const {
    Value t = cast(step, lr_now.dtype()) + 1;
    return {-expm1(t * std::log(beta1)), -expm1(t * std::log(beta2))};
  }
  void update(const Update& u) const {
    Value m = beta1 * u.moment("m") + (1 - beta1) * u.d, v = beta2 * u.moment("v") + (1 - beta2) * (u.d * u.d);
    u.set_moment("m", m);
    u.set_moment("v", v);
    Value r = m / u.shared[0] / (sqrt(v / u.shared[1]) + epsilon) + u.decay(weight_decay) * u.p;
    Value size = sqrt(sum(u.p * u.p)), step = sqrt(sum(r * r));
    Value usable = logical_and(size > 0, step > 0);
    Value trust = select(usable, size / select(usable, step, step.like(1)), size.like(1));
    u.set_parameter(u.p - u.lr * trust * r);
  }
};

}  // namespace tutti
