// Images with mean 0 and standard deviation 1 per channel: the first step of a model, so that whoever runs it later
// gives it plain pixels.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti::nn {

/// (x - mean[c]) / std[c] of images [N, C, H, W], as torchvision.transforms.Normalize has it; pixels of one byte lie in
/// [0, 1] before.
struct TUTTI_API Normalise {
  std::vector<double> mean, std;  ///< per channel, or one number for all of them
  bool operator==(const Normalise&) const = default;
  /// Throws Error(invalid) unless both hold as many finite numbers, at least one, and every `std` is above 0 and
  /// a millionth of its mean.
  void check() const;
  /// Throws Error(invalid) unless every mean is in [0, 1] and every `std` in [0.001, 1], as those of bytes are.
  void check_bytes() const;
  /// Throws Error(invalid) as check() does, and where x has another number of channels.
  Value operator()(Value x) const;
  /// "0.5,0.4,0.3:0.2,0.2,0.2", which parse_normalise() takes.
  std::string text() const;
};

/// "none", "MEAN:STD" with a number or a comma list of one per channel, or "imagenet", "cifar10", "mnist": the numbers
/// of that set. Throws Error(invalid).
TUTTI_API std::optional<Normalise> parse_normalise(const std::string& text);

}  // namespace tutti::nn
