// Adagrad.
#pragma once
#include <vector>

#include "core/base/export.h"
#include "graph/functions.h"
#include "graph/ops/cast.h"
#include "graph/ops/sqrt.h"
#include "train/step/update.h"

namespace tutti {

/// Duchi, Hazan & Singer (2011), as in PyTorch: s' = s + g^2; p' = p - lr / (1 + t lr_decay) g / (sqrt(s') + epsilon),
/// where t is the number of steps done before; weight_decay is added to the gradient.
struct TUTTI_API Adagrad {
  static constexpr const char* name = "adagrad";
  double lr = 1e-2, lr_decay = 0, epsilon = 1e-10, weight_decay = 0;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "Learning rate", &lr},
            {"lr-decay", "Decay of the learning rate per step", &lr_decay},
            {"epsilon", "Keeps the update finite", &epsilon},
            {"weight-decay", "Weight decay", &weight_decay}};
  }
  /// Throws Error(invalid).
  void check() const {}
  Values shared(Graph&, Value lr_now, Value step) const { return {1 / (1 + cast(step, lr_now.dtype()) * lr_decay)}; }
  void update(const Update& u) const {
    Value g = u.gradient(weight_decay), s = u.moment("s") + g * g;
    u.set_moment("s", s);
    u.set_parameter(u.p - u.lr * u.shared[0] * g / (sqrt(s) + epsilon));
  }
};

}  // namespace tutti
