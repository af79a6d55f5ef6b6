#include "data/pixels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/option_text.h"

namespace tutti::data {
namespace {

Column images_of(const Source& set) {
  for (const Column& c : set.columns())
    if (c.name == "input" && c.type.shape.size() == 3 && (c.type.dtype == DType::u8 || c.type.dtype == DType::f32))
      return c;
  throw invalid_option("normalise", "data",
                       fmt::format("{} has no images: the column \"input\" must be u8 or f32 [C, H, W]", set.name),
                       "give MEAN:STD, or omit it for this data");
}

}  // namespace

Pixels pixels_of(const Source& set, int64_t most) {
  Column images = images_of(set);
  int64_t n = set.size(), samples = std::min(n, most);
  auto channels = static_cast<size_t>(images.type.shape[0]);
  auto plane = static_cast<size_t>(images.type.shape[1] * images.type.shape[2]);
  double scale = images.type.dtype == DType::u8 ? 1.0 / 255 : 1;
  std::vector<std::byte> bytes(num_bytes(images.type));
  // Sums deviations from the first image's mean, to avoid cancellation for large values with a small spread.
  std::vector<double> shift(channels), sum(channels), squares(channels);
  for (int64_t i = 0; i < samples; ++i) {
    auto sample = static_cast<int32_t>(i * n / samples);
    set.read("input", std::span(&sample, 1), bytes.data());
    for (size_t c = 0; c < channels; ++c) {
      double s = 0, q = 0;
      if (i == 0) {
        for (size_t k = 0; k < plane; ++k) s += load_element(images.type.dtype, bytes.data(), c * plane + k);
        shift[c] = s / static_cast<double>(plane);
        s = 0;
      }
      for (size_t k = 0; k < plane; ++k) {
        double x = load_element(images.type.dtype, bytes.data(), c * plane + k) - shift[c];
        s += x;
        q += x * x;
      }
      sum[c] += s;
      squares[c] += q;
    }
  }
  Pixels p{.samples = samples};
  double count = static_cast<double>(samples) * static_cast<double>(plane);
  for (size_t c = 0; c < channels; ++c) {
    double mean = sum[c] / count, variance = squares[c] / count - mean * mean;
    p.mean.push_back(scale * (shift[c] + mean));
    p.deviation.push_back(scale * std::sqrt(std::max(variance, 0.0)));
    if (!(static_cast<float>(p.deviation[c]) > 0) || !std::isfinite(p.deviation[c]))
      throw invalid_option(
          "normalise", "data",
          fmt::format("channel {} of {} has the standard deviation {}, which must be finite and above 0", c, set.name,
                      p.deviation[c]),
          "give the values: MEAN:STD");
  }
  return p;
}

}  // namespace tutti::data
