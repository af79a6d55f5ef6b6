// Mixup (Zhang, Cisse, Dauphin, Lopez-Paz: "mixup: Beyond Empirical Risk Minimization", 2018): a model is trained on
// sums of two images, and on the same sum of their losses.
#pragma once
#include <cstdint>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti::nn {

/// The pairs of one batch: sample i and sample n - 1 - i, whose order is random as that of the samples is.
struct TUTTI_API Mixup {
  Value share;  ///< [n] in [0, 1]: what of each sample is its own

  /// Throws Error(invalid) unless alpha is 0 (no mixup) or from 0.01 to 1000.
  static void check(double alpha);
  /// Every share from Beta(alpha, alpha), by 4096 quantiles of equal probability, for an alpha that check() takes and
  /// that is not 0. `seed` u32[2] and `step` as for dropout.
  static Mixup drawn(Value seed, Value step, int64_t n, double alpha, DType dtype);
  /// What x [n, …] has at the other sample of each pair.
  Value partner(Value x) const;
  /// share own + (1 - share) other, for own and other [n, …] of one shape.
  Value sum(Value own, Value other) const;
};

}  // namespace tutti::nn
