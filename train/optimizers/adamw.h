// AdamW.
#pragma once
#include <vector>

#include "core/base/export.h"
#include "graph/ops/adamw.h"
#include "train/step/adam_update.h"

namespace tutti {

/// Loshchilov & Hutter, "Decoupled weight decay regularization" (2019).
struct TUTTI_API AdamW {
  static constexpr const char* name = "adamw";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;

  std::vector<Hyperparameter> hyperparameters() { return adam_family::hyperparameters(*this); }
  /// Throws Error(invalid).
  void check() const { adam_family::check(*this); }
  Values shared(Graph& g, Value rate, Value step) const { return adam_family::corrections(g, *this, rate, step); }
  void update(const Update& u) const { adam_family::update(u, adamw_op, *this); }
};

}  // namespace tutti
