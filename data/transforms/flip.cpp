// Flips an image horizontally, with probability 1/2.
#include <algorithm>

#include "data/transform.h"

namespace tutti::data {
namespace {

void flip(Image& image, double, Draws& draws) {
  if (draws.below(2) == 0) return;
  for (auto row = image.values.begin(); row != image.values.end(); row += image.width)
    std::reverse(row, row + image.width);
}

}  // namespace

extern const Transform flip_transform{
    .name = "flip", .doc = "flip (swap left and right in half of the images)", .apply = flip};

}  // namespace tutti::data
