#include "cli/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "cli/output_file.h"
#include "core/base/option_text.h"
#include "data/dataset.h"
#include "data/files/png.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

bool is_picture(const std::string& target) { return target.ends_with(".png"); }

/// The pixels of a sample in [0, 1]; f32 data is stretched to that range.
std::vector<float> pixels_of(const data::Source& set, int32_t sample) {
  const HostTensor image = data::read_samples(set, "input", std::vector{sample});
  std::vector<float> x = image.to(DType::f32).as<float>();
  const auto [least, most] = std::ranges::minmax_element(x);
  const bool bytes = image.type.dtype == DType::u8;
  const float low = bytes ? 0 : *least, range = bytes ? 255 : std::max(*most - *least, 1e-20F);
  for (float& v : x) v = (v - low) / range;
  return x;
}

/// Sums over the channels, divided by the largest: [-1, 1].
std::vector<float> shares(const float* of, int64_t channels, int64_t area) {
  std::vector<float> sum(static_cast<size_t>(area));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < area; ++i) sum[static_cast<size_t>(i)] += of[c * area + i];
  float most = 0;
  for (float v : sum) most = std::max(most, std::abs(v));
  if (most > 0)
    for (float& v : sum) v /= most;
  return sum;
}

/// f32 [2, 3, H, W] in [0, 1]: the image, and its explanation; small ones are enlarged.
HostTensor picture(const std::vector<float>& pixels, const std::vector<float>& share, int64_t channels, int64_t height,
                   int64_t width) {
  constexpr int64_t seen = 224;  // pixels of the shorter side
  const int64_t scale = std::max<int64_t>(1, seen / std::min(height, width)), area = height * width;
  std::vector<float> all;
  for (int part = 0; part < 2; ++part)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t y = 0; y < height * scale; ++y)
        for (int64_t x = 0; x < width * scale; ++x) {
          const int64_t at = y / scale * width + x / scale;
          const float s = share[static_cast<size_t>(at)];
          // White is 0, red 1, blue -1.
          const float tint = c == 0 ? std::min(1.0F, 1 + s) : c == 2 ? std::min(1.0F, 1 - s) : 1 - std::abs(s);
          all.push_back(part ? tint : pixels[static_cast<size_t>(std::min(c, channels - 1) * area + at)]);
        }
  return host_tensor(DType::f32, {2, 3, height * scale, width * scale}, all);
}

/// "00007-shoe.png".
std::string file_of(const data::Source& set, int64_t i) {
  const std::string stem = fs::path(set.sample_name(i)).stem().string();
  return fmt::format("{:05}{}{}.png", i, stem.empty() ? "" : "-", stem);
}

}  // namespace

void check_explain(const std::string& target, const data::Source& set) {
  if (is_picture(target)) {
    if (set.size() > 1)
      throw invalid_option("explain", target, fmt::format("is one picture, and the data has {} samples", set.size()),
                           "name a folder, or predict one image: --data images:FILE");
    return check_target("--explain", target);
  }
  std::error_code failure;
  fs::create_directories(target, failure);
  if (failure || !fs::is_directory(target, failure))
    throw invalid_option("explain", target, fmt::format("cannot make the folder: {}", failure.message()),
                         "name a folder that can be written, or FILE.png");
}

void write_explanations(const std::string& target, const data::Source& set, const HostTensor& explanation) {
  const Shape& shape = explanation.type.shape;
  const int64_t channels = shape[1], area = shape[2] * shape[3];
  const std::vector<float> values = explanation.as<float>();
  for (int64_t i = 0; i < set.size(); ++i) {
    const std::vector<float> share = shares(&values[static_cast<size_t>(i * channels * area)], channels, area);
    write_png_grid(is_picture(target) ? target : target + "/" + file_of(set, i),
                   picture(pixels_of(set, static_cast<int32_t>(i)), share, channels, shape[2], shape[3]));
  }
}

}  // namespace tutti::cli
