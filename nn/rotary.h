// Rotary positions with the context extensions of published models.
#pragma once
#include <vector>

#include "core/base/export.h"
#include "nn/module.h"

namespace tutti::nn {

/// YaRN's factor of the rotated elements for an extension by `factor`, with the weight `m` (Peng et al., 2023).
TUTTI_API double yarn_magnitude(double factor, double m = 1);

/// Rotary positions of attention heads (Su et al., 2021). Pairs are (i, i + size / 2) of the first `size` elements; the
/// other elements are unchanged.
struct TUTTI_API Rotary {
  enum class Scaling {
    none,
    linear,    ///< positions divided by `factor` (Chen et al., 2023)
    dynamic,   ///< beyond `original` tokens the base grows with the sequence (NTK-aware)
    yarn,      ///< low frequencies are divided by `factor` (Peng et al., 2023)
    llama3,    ///< the same, by wavelength, as in Llama 3.1
    longrope,  ///< every frequency has its own factor (Ding et al., 2024)
  };
  double base = 10000;
  int64_t size = 0;  ///< rotated elements of a head, even; 0: all
  Scaling scaling = Scaling::none;
  double factor = 1;
  int64_t original = 0;        ///< context before the extension
  double magnitude = 1;        ///< multiplies the rotated elements
  double low = 1, high = 4;    ///< llama3: wavelengths above original / low are scaled fully, below original / high not
  double fast = 32, slow = 1;  ///< yarn: the same, as rotations within the original context
  bool truncate = true;        ///< yarn: rounds the range of scaled pairs outwards
  std::vector<double> short_factors = {}, long_factors = {};  ///< longrope: up to `original` tokens, and beyond
  bool operator==(const Rotary&) const = default;

  /// Radians per position of every pair, for heads of `head` elements and a sequence of `length` tokens.
  std::vector<double> frequencies(int64_t head, int64_t length) const;
  /// Rotates x [N, H, T, D] at the builder's positions. Throws Error(invalid) when decoding in a context for which the
  /// frequencies would change with every token.
  Value forward(Builder& b, Value x) const;
};

}  // namespace tutti::nn
