// NAdam.
#pragma once
#include <cmath>
#include <vector>

#include "core/base/export.h"
#include "graph/functions.h"
#include "graph/ops/cast.h"
#include "graph/ops/equal.h"
#include "graph/ops/exp.h"
#include "graph/ops/expm1.h"
#include "graph/ops/select.h"
#include "graph/ops/sqrt.h"
#include "train/step/adam_update.h"

namespace tutti {

/// Dozat, "Incorporating Nesterov momentum into Adam" (2016), as in PyTorch; weight_decay is added to the gradient.
struct TUTTI_API NAdam {
  static constexpr const char* name = "nadam";
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, momentum_decay = 4e-3, weight_decay = 0;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "Learning rate", &lr},
            {"beta1", "Decay of the first moment", &beta1},
            {"beta2", "Decay of the second moment", &beta2},
            {"epsilon", "Keeps the update finite", &epsilon},
            {"momentum-decay", "Decay of the momentum", &momentum_decay},
            {"weight-decay", "Weight decay", &weight_decay}};
  }
  /// Throws Error(invalid).
  void check() const { adam_family::check(*this); }
  /// The factors of the gradient and of the first moment, and 1 - beta2^t.
  Values shared(Graph& g, Value lr_now, Value step) const {
    Value t = cast(step, lr_now.dtype()) + 1;
    auto momentum = [&](Value at) { return beta1 * (1 - 0.5 * exp(at * (momentum_decay * std::log(0.96)))); };
    Value now = momentum(t), next = momentum(t + 1);
    Value before = g.state("optimizer.momentum_product", lr_now.type(), StateRole::optimizer);
    Value product = select(equal(step, step.like(0)), before.like(1), before) * now;  // a new state is 0
    g.set_state("optimizer.momentum_product", product);
    return {(1 - now) / (1 - product), next / (1 - product * next), -expm1(t * std::log(beta2))};
  }
  void update(const Update& u) const {
    Value g = u.gradient(weight_decay);
    auto [m, v] = adam_family::moments(u, g, *this);
    Value below = sqrt(v / u.shared[2]) + epsilon;
    u.set_parameter(u.p - u.lr * (u.shared[0] * g + u.shared[1] * m) / below);
  }
};

}  // namespace tutti
