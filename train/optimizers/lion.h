// Lion.
#pragma once
#include <vector>

#include "core/base/export.h"
#include "graph/functions.h"
#include "graph/ops/sign.h"
#include "train/step/adam_update.h"

namespace tutti {

/// Chen et al., "Symbolic discovery of optimization algorithms" (2023): c = beta1 m + (1 - beta1) g; p' = p (1 - lr
/// weight_decay) - lr sign(c); m' = beta2 m + (1 - beta2) g.
struct TUTTI_API Lion {
  static constexpr const char* name = "lion";
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "Learning rate", &lr},
            {"beta1", "Decay of the first moment", &beta1},
            {"beta2", "Decay of the second moment", &beta2},
            {"weight-decay", "Weight decay", &weight_decay}};
  }
  /// Throws Error(invalid).
  void check() const { adam_family::check(*this); }
  Values shared(Graph&, Value, Value) const { return {}; }
  void update(const Update& u) const {
    Value m = u.moment("m");
    Value c = beta1 * m + (1 - beta1) * u.d;
    u.set_moment("m", beta2 * m + (1 - beta2) * u.d);
    u.set_parameter(u.p * (1 - u.lr * u.decay(weight_decay)) - u.lr * sign(c));
  }
};

}  // namespace tutti
