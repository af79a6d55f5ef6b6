// A list of transforms, as --augment names it, applied to the images of a training batch.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/batch_loader.h"
#include "data/transform.h"

namespace tutti::data {

class Augment {
 public:
  /// "crop:4,flip,cutout:8", in that order; "" and "none": nothing. Throws Error(invalid) naming what is unknown, with
  /// the nearest name, and numbers out of range.
  explicit Augment(const std::string& list);
  bool empty() const { return steps_.empty(); }
  /// Throws Error(invalid) unless the column "input" holds images u8 or f32 [C, H, W], no other column has a value per
  /// pixel, which would have to move as well, and no transform's number is so large that nothing of an image may be
  /// left.
  void check(const Source& set) const;
  /// Changes the column "input" of a set that passed check(); sample i always the same way in one epoch. Null where the
  /// list is empty.
  Change change(const Source& set, uint64_t seed, uint32_t epoch) const;

 private:
  std::vector<std::pair<const Transform*, double>> steps_;
};

}  // namespace tutti::data
