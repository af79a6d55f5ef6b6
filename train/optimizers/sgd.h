// Stochastic gradient descent.
#pragma once
#include <vector>

#include "core/base/export.h"
#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/ops/sgd.h"
#include "graph/ops/sgd_momentum.h"
#include "train/step/update.h"

namespace tutti {

/// Stochastic gradient descent with PyTorch's momentum: m' = momentum m + g; p' = p - lr m' (nesterov: lr (g + momentum
/// m')); weight_decay is added to the gradient.
struct TUTTI_API Sgd {
  static constexpr const char* name = "sgd";
  double lr = 1e-2, momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "Learning rate", &lr},
            {"momentum", "Momentum", &momentum},
            {"nesterov", "Nesterov's momentum", nullptr, &nesterov},
            {"weight-decay", "Weight decay", &weight_decay}};
  }
  /// Throws Error(invalid).
  void check() const {
    if (nesterov && momentum == 0)
      throw invalid(option_text("nesterov") + " needs " + option_text("momentum"), option_text("momentum", 0.9));
  }
  Values shared(Graph&, Value, Value) const { return {}; }
  void update(const Update& u) const {
    if (momentum == 0)
      return u.set_parameter(call(sgd_op, {u.p, u.d, u.lr}, {{"weight_decay", Reals{u.decay(weight_decay)}}}));
    Values out = call_all(
        sgd_momentum_op, {u.p, u.d, u.moment("m"), u.lr},
        {{"momentum", Reals{momentum}}, {"nesterov", Ints{nesterov}}, {"weight_decay", Reals{u.decay(weight_decay)}}});
    u.set_parameter(out[0]);
    u.set_moment("m", out[1]);
  }
};

}  // namespace tutti
