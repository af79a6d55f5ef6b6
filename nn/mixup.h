// Mixup (Zhang, Cisse, Dauphin, Lopez-Paz: "mixup: Beyond Empirical Risk Minimization", 2018): trains on weighted sums
// of two images and on the same weighted sums of their losses.
#pragma once
#include <cstdint>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti::nn {

/// Pairs of samples of a batch: sample i with sample n - 1 - i; the pairing is random because the order of samples is.
struct TUTTI_API Mixup {
  Value share;  ///< [n] in [0, 1]: the weight of each sample in its own sum

  /// Throws Error(invalid) unless alpha is 0 (no mixup) or in [0.01, 1000].
  static void check(double alpha);
  /// Draws every share from Beta(alpha, alpha), by 4096 quantiles of equal probability; alpha must pass check() and not
  /// be 0. `seed` u32[2] and `step` as for dropout.
  static Mixup drawn(Value seed, Value step, int64_t n, double alpha, DType dtype);
  /// The rows of x [n, …] of each sample's partner.
  Value partner(Value x) const;
  /// share * own + (1 - share) * other, for own and other [n, …] of one shape.
  Value sum(Value own, Value other) const;
};

}  // namespace tutti::nn
