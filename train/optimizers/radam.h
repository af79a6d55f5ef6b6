// RAdam.
#pragma once
#include <cmath>
#include <vector>

#include "core/base/export.h"
#include "graph/functions.h"
#include "graph/ops/cast.h"
#include "graph/ops/expm1.h"
#include "graph/ops/select.h"
#include "graph/ops/sqrt.h"
#include "train/step/adam_update.h"

namespace tutti {

/// Liu et al., "On the variance of the adaptive learning rate and beyond" (2020), as in PyTorch; weight_decay is added
/// to the gradient.
struct TUTTI_API RAdam {
  static constexpr const char* name = "radam";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;

  std::vector<Hyperparameter> hyperparameters() { return adam_family::hyperparameters(*this); }
  /// Throws Error(invalid).
  void check() const { adam_family::check(*this); }
  /// 1 - beta1^t; the factor sqrt(1 - beta2^t) times the rectification; whether rectification applies.
  Values shared(Graph& g, Value lr_now, Value step) const {
    Value t = cast(step, lr_now.dtype()) + 1, one = t.like(1);
    Values c = adam_family::corrections(g, *this, lr_now, step);
    double most = 2 / (1 - beta2) - 1;
    Value length = most - 2 * t * (1 - c[1]) / c[1], rectified = length > 5, safe = select(rectified, length, 6 * one);
    Value r = sqrt((safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe));
    return {c[0], sqrt(c[1]) * r, rectified};
  }
  void update(const Update& u) const {
    auto [m, v] = adam_family::moments(u, u.gradient(weight_decay), *this);
    Value step = m / u.shared[0];
    u.set_parameter(u.p - u.lr * select(u.shared[2], step * u.shared[1] / (sqrt(v) + epsilon), step));
  }
};

}  // namespace tutti
