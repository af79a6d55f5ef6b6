// Scales brightness, contrast and (for RGB) saturation by random factors, in that order, as defined by torchvision's
// ColorJitter: relative to black, to the image's mean grey, and to each pixel's grey. u8 values are clamped to [0,
// 255].
#include <algorithm>

#include "data/transform.h"

namespace tutti::data {
namespace {

float grey(const Image& image, size_t at) {
  size_t plane = static_cast<size_t>(image.height * image.width);
  const std::vector<float>& v = image.values;
  return image.channels == 3 ? 0.299f * v[at] + 0.587f * v[plane + at] + 0.114f * v[2 * plane + at] : v[at];
}

/// Scales the distance of every value from `middle` of its pixel.
template <class F>
void scale(Image& image, float factor, F middle) {
  size_t plane = static_cast<size_t>(image.height * image.width);
  for (size_t i = 0; i < plane; ++i) {
    float m = middle(i);
    for (size_t at = i; at < image.values.size(); at += plane)
      image.values[at] = std::clamp(m + (image.values[at] - m) * factor, image.least, image.most);
  }
}

void jitter(Image& image, double number, Draws& draws) {
  auto most = static_cast<float>(number);
  auto factor = [&] { return draws.between(1 - most, 1 + most); };
  scale(image, factor(), [](size_t) { return 0.f; });
  double mean = 0;
  size_t plane = static_cast<size_t>(image.height * image.width);
  for (size_t i = 0; i < plane; ++i) mean += static_cast<double>(grey(image, i)) / static_cast<double>(plane);
  scale(image, factor(), [&](size_t) { return static_cast<float>(mean); });
  if (image.channels == 3) scale(image, factor(), [&](size_t i) { return grey(image, i); });
}

}  // namespace

extern const Transform jitter_transform{
    .name = "jitter",
    .doc = "jitter[:0.2] (change brightness, contrast and saturation by at most that fraction)",
    .usual = 0.2,
    .least = 0,
    .most = 1,
    .apply = jitter};

}  // namespace tutti::data
