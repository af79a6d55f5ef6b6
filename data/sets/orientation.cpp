// Drawn images of glyphs and shapes rotated by known angles, with noise: the data for the model `orientation`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/form.h"
#include "data/synthetic.h"

namespace tutti::data {
namespace {

constexpr uint32_t pose_stream = 0x64617407, noise_stream = 0x64617408;

struct Point {
  float x, y;
};
/// Connected strokes on [-1, 1] x [-1, 1], y downwards.
using Stroke = std::vector<Point>;

/// Figures without rotational symmetry.
const std::vector<std::vector<Stroke>>& figures() {
  static const std::vector<std::vector<Stroke>> all = {
      {{{-.5f, 1}, {-.5f, -1}, {.6f, -1}}, {{-.5f, -.1f}, {.4f, -.1f}}},                        // F
      {{{-.5f, -1}, {-.5f, 1}, {.6f, 1}}},                                                      // L
      {{{-.5f, 1}, {-.5f, -1}, {.3f, -1}, {.6f, -.7f}, {.6f, -.2f}, {.3f, .1f}, {-.5f, .1f}}},  // P
      {{{-.5f, 1}, {-.5f, -1}, {.3f, -1}, {.6f, -.7f}, {.6f, -.2f}, {.3f, .1f}, {-.5f, .1f}},
       {{.05f, .1f}, {.6f, 1}}},                                                                            // R
      {{{.5f, -1}, {.5f, .6f}, {.1f, 1}, {-.3f, .9f}, {-.5f, .5f}}},                                        // J
      {{{-.6f, -1}, {.6f, -1}, {-.1f, 1}}},                                                                 // 7
      {{{.3f, 1}, {.3f, -1}, {-.6f, .4f}, {.7f, .4f}}},                                                     // 4
      {{{.6f, -1}, {-.5f, -1}, {-.5f, 1}, {.6f, 1}}, {{-.5f, 0}, {.4f, 0}}},                                // E
      {{{-.6f, 1}, {0, -1}, {.6f, 1}}, {{-.35f, .2f}, {.35f, .2f}}},                                        // A
      {{{-.7f, -1}, {.7f, -1}}, {{0, -1}, {0, 1}}},                                                         // T
      {{{-.6f, -1}, {0, 0}, {.6f, -1}}, {{0, 0}, {0, 1}}},                                                  // Y
      {{{0, 1}, {0, -1}}, {{-.5f, -.4f}, {0, -1}, {.5f, -.4f}}},                                            // an arrow
      {{{0, -1}, {.7f, 1}, {0, .5f}, {-.7f, 1}, {0, -1}}},                                                  // a dart
      {{{-.7f, .7f}, {-.7f, -.3f}, {0, -1}, {.7f, -.3f}, {.7f, .7f}, {-.7f, .7f}}},                         // a house
      {{{.5f, -.8f}, {-.1f, -1}, {-.6f, -.5f}, {-.6f, .5f}, {-.1f, 1}, {.5f, .8f}, {.5f, .1f}, {0, .1f}}},  // G
  };
  return all;
}

float distance_to(Point p, Point a, Point b) {
  float dx = b.x - a.x, dy = b.y - a.y;
  float t = ((p.x - a.x) * dx + (p.y - a.y) * dy) / std::max(dx * dx + dy * dy, 1e-12f);
  t = std::clamp(t, 0.f, 1.f);
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

/// Draws one image of size x size, and the sine and cosine of its angle.
void draw(uint32_t half, uint32_t sample, int64_t size, std::byte* image, float* angle) {
  std::array<uint32_t, 4> a = random_block(0, half, pose_stream, 2 * uint64_t{sample}),
                          b = random_block(0, half, pose_stream, 2 * uint64_t{sample} + 1);
  const auto& figure = figures()[a[0] % figures().size()];
  float theta = 2 * std::numbers::pi_v<float> * unit(a[1]), s = std::sin(theta), c = std::cos(theta);
  angle[0] = s;
  angle[1] = c;
  auto n = static_cast<float>(size);
  float scale = n * (0.32f + 0.05f * unit(a[2])), thickness = n * (0.03f + 0.01f * unit(a[3]));
  float cx = n / 2 + n * 0.02f * (2 * unit(b[0]) - 1), cy = n / 2 + n * 0.02f * (2 * unit(b[1]) - 1);
  float ground = 40 * unit(b[2]), ink = 180 + 60 * unit(b[3]);
  std::vector<Stroke> turned = figure;
  for (Stroke& stroke : turned)
    for (Point& p : stroke) p = {cx + scale * (c * p.x - s * p.y), cy + scale * (s * p.x + c * p.y)};
  for (int64_t y = 0; y < size; ++y)
    for (int64_t x = 0; x < size; ++x) {
      Point p{static_cast<float>(x), static_cast<float>(y)};
      float nearest = n;
      for (const Stroke& stroke : turned)
        for (size_t k = 0; k + 1 < stroke.size(); ++k)
          nearest = std::min(nearest, distance_to(p, stroke[k], stroke[k + 1]));
      float cover = std::clamp(thickness - nearest + 0.5f, 0.f, 1.f);
      auto at = static_cast<uint64_t>(y * size + x);
      uint32_t word = random_block(sample, half, noise_stream, at / 4)[at % 4];
      float noise = 20 * (unit(word) + unit(word * 2654435761u) - 1);
      image[at] = static_cast<std::byte>(std::clamp(ground + cover * (ink - ground) + noise, 0.f, 255.f));
    }
}

std::shared_ptr<TensorSet> make(const std::string& name, int64_t size, int64_t count, uint32_t half) {
  HostTensor images{{DType::u8, {count, 1, size, size}}, {}}, angles{{DType::f32, {count, 2}}, {}};
  images.bytes.resize(num_bytes(images.type));
  angles.bytes.resize(num_bytes(angles.type));
  for (int64_t i = 0; i < count; ++i) {
    float angle[2];
    draw(half, static_cast<uint32_t>(i), size, images.bytes.data() + i * size * size, angle);
    std::memcpy(angles.bytes.data() + static_cast<size_t>(i) * sizeof angle, angle, sizeof angle);
  }
  return std::make_shared<TensorSet>(name, std::vector<std::pair<std::string, HostTensor>>{
                                               {"input", std::move(images)}, {"angle", std::move(angles)}});
}

Sources open(const std::string& spec, const OpenOptions&) {
  std::vector<std::string> parts = fields(spec, ':');
  int64_t numbers[] = {128, 9000, 1000};
  bool good = parts.size() <= 4;
  for (size_t i = 1; good && i < parts.size(); ++i) {
    numbers[i - 1] = parse_number<int64_t>(parts[i]).value_or(0);
    good = numbers[i - 1] >= (i == 1 ? 8 : 1);
  }
  if (!good || numbers[0] > 1024 || numbers[1] > 1 << 20 || numbers[2] > 1 << 20)
    throw invalid(fmt::format("data '{}': expected orientation:SIZE[:TRAIN[:TEST]], a size from 8 to 1024 and at most "
                              "2^20 images",
                              spec),
                  use_one_of_the_forms(spec));
  return {make("orientation/train", numbers[0], numbers[1], 0), make("orientation/test", numbers[0], numbers[2], 1)};
}

}  // namespace

extern const DataForm orientation_form{.name = "orientation",
                                       .form = "orientation:SIZE[:TRAIN[:TEST]] (drawn images, turned by known angles)",
                                       .open = open,
                                       .takes_arguments = true};

}  // namespace tutti::data
