// Normalizes images to mean 0 and standard deviation 1 per channel as the first step of a model, so that its callers
// pass plain pixels.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti::nn {

/// (x - mean[c]) / std[c] of images [N, C, H, W], as torchvision.transforms.Normalize; u8 pixels are first scaled to
/// [0, 1].
struct TUTTI_API Normalise {
  std::vector<double> mean, std;  ///< per channel, or one number for all channels
  bool operator==(const Normalise&) const = default;
  /// Throws Error(invalid) unless both have the same number of finite elements, at least one, and every `std` is
  /// positive and more than a millionth of its mean.
  void check() const;
  /// Throws Error(invalid) unless every mean is in [0, 1] and every `std` in [0.001, 1], the ranges for u8 pixels.
  void check_bytes() const;
  /// Throws Error(invalid) like check(), and if x has another number of channels.
  Value operator()(Value x) const;
  /// "0.5,0.4,0.3:0.2,0.2,0.2", the format of parse_normalise().
  std::string text() const;
};

/// "none", "MEAN:STD" with one number or a comma-separated list per channel, or "imagenet", "cifar10", "mnist" for the
/// statistics of that data set. Throws Error(invalid).
TUTTI_API std::optional<Normalise> parse_normalise(const std::string& text);

}  // namespace tutti::nn
