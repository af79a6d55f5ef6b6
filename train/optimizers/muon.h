// Muon.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/export.h"
#include "graph/functions.h"
#include "graph/ops/cast.h"
#include "graph/ops/expm1.h"
#include "graph/ops/matmul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sum.h"
#include "graph/ops/transpose.h"
#include "train/step/adam_update.h"

namespace tutti {

/// Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024), as in PyTorch but without bf16:
/// matrices (convolution kernels as [channels, the rest]) are updated with the momentum orthogonalized by five
/// Newton-Schulz iterations, times sqrt(max(1, rows / columns)); weight decay is decoupled. Other parameters use AdamW
/// with beta1 0.9, beta2 0.95.
struct TUTTI_API Muon {
  static constexpr const char* name = "muon";
  double lr = 1e-3, momentum = 0.95, weight_decay = 0.1, epsilon = 1e-7;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "Learning rate", &lr},
            {"momentum", "Momentum", &momentum},
            {"weight-decay", "Weight decay", &weight_decay},
            {"epsilon", "Keeps the update finite", &epsilon}};
  }
  /// Throws Error(invalid).
  void check() const { check_share("momentum", momentum); }
  Values shared(Graph& g, Value lr_now, Value step) const { return adam_family::corrections(g, *this, lr_now, step); }
  void update(const Update& u) const {
    Value kept = u.p * (1 - u.lr * u.decay(weight_decay));
    if (u.p.rank() < 2) {
      auto [m, v] = adam_family::moments(u, u.d, *this);
      return u.set_parameter(kept - u.lr * (m / u.shared[0]) / (sqrt(v / u.shared[1]) + 1e-8));
    }
    Value m = momentum * u.moment("m") + (1 - momentum) * u.d;
    u.set_moment("m", m);
    int64_t rows = u.p.shape()[0], columns = num_elements(u.p.shape()) / rows;
    Value x = orthogonal(reshape((1 - momentum) * u.d + momentum * m, {rows, columns}));
    double scale = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    u.set_parameter(kept - u.lr * (scale * reshape(x, u.p.shape())));
  }

  static constexpr double beta1 = 0.9, beta2 = 0.95;  ///< of parameters that are not matrices

 private:
  /// Approximates the nearest orthogonal matrix with five Newton-Schulz iterations.
  Value orthogonal(Value x) const {
    bool tall = x.shape()[0] > x.shape()[1];
    if (tall) x = transpose(x, {1, 0});
    x = x / maximum(sqrt(sum(x * x)), epsilon);
    for (int k = 0; k < 5; ++k) {
      Value a = matmul(x, x, false, true);
      x = 3.4445 * x + matmul(-4.7750 * a + 2.0315 * matmul(a, a), x);
    }
    return tall ? transpose(x, {1, 0}) : x;
  }
};

}  // namespace tutti
