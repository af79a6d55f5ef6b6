// RMSprop.
#pragma once
#include <vector>

#include "core/base/export.h"
#include "graph/functions.h"
#include "graph/ops/sqrt.h"
#include "train/step/update.h"

namespace tutti {

/// Tieleman & Hinton (2012), as in PyTorch: v' = alpha v + (1 - alpha) g^2 (centered: minus the square of the mean
/// gradient); p' = p - lr g / (sqrt(v') + epsilon), optionally with momentum; weight_decay is added to the gradient.
struct TUTTI_API RmsProp {
  static constexpr const char* name = "rmsprop";
  double lr = 1e-2, alpha = 0.99, epsilon = 1e-8, momentum = 0, weight_decay = 0;
  bool centered = false;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "Learning rate", &lr},
            {"alpha", "Decay of the mean square", &alpha},
            {"epsilon", "Keeps the update finite", &epsilon},
            {"momentum", "Momentum", &momentum},
            {"centered", "Divides by the deviation, not the mean square", nullptr, &centered},
            {"weight-decay", "Weight decay", &weight_decay}};
  }
  /// Throws Error(invalid).
  void check() const { check_share("alpha", alpha); }
  Values shared(Graph&, Value, Value) const { return {}; }
  void update(const Update& u) const {
    Value g = u.gradient(weight_decay), v = alpha * u.moment("v") + (1 - alpha) * (g * g), square = v;
    u.set_moment("v", v);
    if (centered) {
      Value mean = alpha * u.moment("g") + (1 - alpha) * g;
      u.set_moment("g", mean);
      square = v - mean * mean;
    }
    Value step = g / (sqrt(square) + epsilon);
    if (momentum != 0) {
      step = momentum * u.moment("m") + step;
      u.set_moment("m", step);
    }
    u.set_parameter(u.p - u.lr * step);
  }
};

}  // namespace tutti
