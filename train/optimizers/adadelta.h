// Adadelta.
#pragma once
#include <vector>

#include "core/base/export.h"
#include "graph/functions.h"
#include "graph/ops/sqrt.h"
#include "train/step/update.h"

namespace tutti {

/// Zeiler (2012), as in PyTorch: v' = rho v + (1 - rho) g^2; d = sqrt(a + epsilon) / sqrt(v' + epsilon) g; a' = rho a +
/// (1 - rho) d^2; p' = p - lr d; weight_decay is added to the gradient.
struct TUTTI_API Adadelta {
  static constexpr const char* name = "adadelta";
  double lr = 1, rho = 0.9, epsilon = 1e-6, weight_decay = 0;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "Learning rate", &lr},
            {"rho", "Decay of the mean squares", &rho},
            {"epsilon", "Keeps the update finite", &epsilon},
            {"weight-decay", "Weight decay", &weight_decay}};
  }
  /// Throws Error(invalid).
  void check() const { check_share("rho", rho); }
  Values shared(Graph&, Value, Value) const { return {}; }
  void update(const Update& u) const {
    Value g = u.gradient(weight_decay), v = rho * u.moment("v") + (1 - rho) * (g * g), a = u.moment("a");
    Value d = sqrt(a + epsilon) / sqrt(v + epsilon) * g;
    u.set_moment("v", v);
    u.set_moment("a", rho * a + (1 - rho) * (d * d));
    u.set_parameter(u.p - u.lr * d);
  }
};

}  // namespace tutti
