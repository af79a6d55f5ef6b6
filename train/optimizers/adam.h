// Adam.
#pragma once
#include <vector>

#include "core/base/export.h"
#include "graph/ops/adam.h"
#include "train/step/adam_update.h"

namespace tutti {

/// Kingma & Ba, "Adam" (2015); weight_decay is added to the gradient.
struct TUTTI_API Adam {
  static constexpr const char* name = "adam";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;

  std::vector<Hyperparameter> hyperparameters() { return adam_family::hyperparameters(*this); }
  /// Throws Error(invalid).
  void check() const { adam_family::check(*this); }
  Values shared(Graph& g, Value rate, Value step) const { return adam_family::corrections(g, *this, rate, step); }
  void update(const Update& u) const { adam_family::update(u, adam_op, *this); }
};

}  // namespace tutti
