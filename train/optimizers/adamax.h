// Adamax.
#pragma once
#include <vector>

#include "core/base/export.h"
#include "graph/functions.h"
#include "graph/ops/abs.h"
#include "train/step/adam_update.h"

namespace tutti {

/// Kingma & Ba, "Adam" (2015), section 7.1, as in PyTorch: m as in Adam; u' = max(beta2 u, |g| + epsilon); p' = p - lr
/// / (1 - beta1^t) m' / u'; weight_decay is added to the gradient.
struct TUTTI_API Adamax {
  static constexpr const char* name = "adamax";
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;

  std::vector<Hyperparameter> hyperparameters() { return adam_family::hyperparameters(*this); }
  /// Throws Error(invalid).
  void check() const { adam_family::check(*this); }
  Values shared(Graph& g, Value lr_now, Value step) const { return adam_family::corrections(g, *this, lr_now, step); }
  void update(const Update& u) const {
    Value g = u.gradient(weight_decay), m = beta1 * u.moment("m") + (1 - beta1) * g;
    Value largest = maximum(beta2 * u.moment("u"), abs(g) + epsilon);
    u.set_moment("m", m);
    u.set_moment("u", largest);
    u.set_parameter(u.p - u.lr / u.shared[0] * m / largest);
  }
};

}  // namespace tutti
