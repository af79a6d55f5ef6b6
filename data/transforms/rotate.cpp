// Rotates an image about its center by a random angle, with bilinear interpolation; outside the image is black.
#include <cmath>
#include <numbers>

#include "data/transform.h"

namespace tutti::data {
namespace {

void rotate(Image& image, double number, Draws& draws) {
  auto most = static_cast<float>(number * std::numbers::pi / 180);
  float angle = draws.between(-most, most), s = std::sin(angle), c = std::cos(angle);
  float middle_x = static_cast<float>(image.width - 1) / 2, middle_y = static_cast<float>(image.height - 1) / 2;
  Image from = image;
  auto pixel = [&](int64_t channel, int64_t y, int64_t x) {
    return y >= 0 && y < from.height && x >= 0 && x < from.width ? from.at(channel, y, x) : 0.f;
  };
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      float dx = static_cast<float>(x) - middle_x, dy = static_cast<float>(y) - middle_y;
      float u = middle_x + c * dx + s * dy, v = middle_y - s * dx + c * dy;
      float left = std::floor(u), top = std::floor(v), fx = u - left, fy = v - top;
      auto i = static_cast<int64_t>(left), j = static_cast<int64_t>(top);
      for (int64_t k = 0; k < image.channels; ++k)
        image.at(k, y, x) = (1 - fy) * ((1 - fx) * pixel(k, j, i) + fx * pixel(k, j, i + 1)) +
                            fy * ((1 - fx) * pixel(k, j + 1, i) + fx * pixel(k, j + 1, i + 1));
    }
}

}  // namespace

extern const Transform rotate_transform{.name = "rotate",
                                        .doc = "rotate[:15] (rotate by at most that many degrees in either direction)",
                                        .usual = 15,
                                        .least = 0,
                                        .most = 180,
                                        .apply = rotate};

}  // namespace tutti::data
