// Crops a random part of the zero-padded image: He et al., "Deep residual learning" (2016), section 4.2.
#include <algorithm>

#include "data/transform.h"

namespace tutti::data {
namespace {

void crop(Image& image, double number, Draws& draws) {
  auto pad = static_cast<int64_t>(number);
  int64_t down = draws.below(2 * pad + 1) - pad, right = draws.below(2 * pad + 1) - pad;
  Image from = image;
  for (int64_t c = 0; c < image.channels; ++c)
    for (int64_t y = 0; y < image.height; ++y)
      for (int64_t x = 0; x < image.width; ++x) {
        int64_t v = y + down, u = x + right;
        bool inside = v >= 0 && v < image.height && u >= 0 && u < image.width;
        image.at(c, y, x) = inside ? from.at(c, v, u) : 0;
      }
}

}  // namespace

extern const Transform crop_transform{
    .name = "crop",
    .doc = "crop[:4] (shift by at most that many pixels in each direction, padded with black)",
    .usual = 4,
    .least = 1,
    .most = 1024,
    .whole = true,
    .below = [](int64_t height, int64_t width) { return std::min(height, width); },
    .apply = crop};

}  // namespace tutti::data
