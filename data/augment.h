// Image transforms applied to training batches, as listed in --augment.
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
  /// "crop:4,flip,cutout:8", applied in that order; "" and "none": nothing. Throws Error(invalid) for unknown
  /// transforms, naming the nearest one, and for numbers out of range.
  explicit Augment(const std::string& list);
  bool empty() const { return steps_.empty(); }
  /// Throws Error(invalid) unless the column "input" holds images u8 or f32 [C, H, W] and no other column has one value
  /// per pixel, which would have to be transformed as well, and for a transform whose number could remove the whole
  /// image.
  void check(const Source& set) const;
  /// Transforms the column "input" of a source that passed check(); sample i is always changed the same way in one
  /// epoch. Null if the list is empty.
  Change change(const Source& set, uint64_t seed, uint32_t epoch) const;

 private:
  std::vector<std::pair<const Transform*, double>> steps_;
};

}  // namespace tutti::data
