// What is done to the images of a batch before the model.
#pragma once
#include <optional>
#include <utility>

#include "core/base/export.h"
#include "graph/graph.h"
#include "nn/mixup.h"
#include "nn/normalise.h"

namespace tutti::nn {

/// Scales, normalizes and mixes images [N, C, H, W].
class TUTTI_API ImageTransform {
 public:
  /// From now on images are normalized.
  void normalise(Normalise how) { normalise_ = std::move(how); }
  /// Whether any have been normalized.
  bool normalised() const { return normalised_; }
  /// From now on pairs of the batch's images are mixed.
  void mix(const Mixup& how) { mixup_ = how; }
  /// Whether any have been mixed.
  bool mixed() const { return mixed_; }
  /// The first images [N, C, H, W] that were transformed, scaled but not normalized or mixed; null: none.
  const Value& pixels() const { return pixels_; }
  /// The column with u8 scaled by 1/255, images normalized and mixed if enabled. Other columns are only scaled.
  Value operator()(Value column);

 private:
  std::optional<Normalise> normalise_;
  std::optional<Mixup> mixup_;
  bool normalised_ = false, mixed_ = false;
  Value pixels_;
};

}  // namespace tutti::nn
