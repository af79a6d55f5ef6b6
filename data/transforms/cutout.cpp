// Zeroes a square at a random position: DeVries and Taylor, "Improved regularization of convolutional neural networks
// with cutout" (2017). Its center is any pixel, so that part of it may lie outside.
#include <algorithm>

#include "data/transform.h"

namespace tutti::data {
namespace {

void cutout(Image& image, double number, Draws& draws) {
  auto side = static_cast<int64_t>(number);
  int64_t top = draws.below(image.height) - side / 2, left = draws.below(image.width) - side / 2;
  for (int64_t c = 0; c < image.channels; ++c)
    for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + side, image.height); ++y)
      for (int64_t x = std::max<int64_t>(left, 0); x < std::min(left + side, image.width); ++x) image.at(c, y, x) = 0;
}

}  // namespace

extern const Transform cutout_transform{.name = "cutout",
                                        .doc = "cutout[:8] (a black square of that side length)",
                                        .usual = 8,
                                        .least = 1,
                                        .most = 1024,
                                        .whole = true,
                                        .below = [](int64_t height, int64_t width) { return std::max(height, width); },
                                        .apply = cutout};

}  // namespace tutti::data
