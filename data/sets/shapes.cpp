// Drawn discs, squares and triangles over a noisy background, with the class of every pixel: data for segmentation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/form.h"
#include "data/synthetic.h"

namespace tutti::data {
namespace {

constexpr uint32_t scene_stream = 0x64617409, noise_stream = 0x6461740a;
constexpr int64_t classes = 4, most_shapes = 4;  // class 0 is the background

/// Center, radius, and the cosine and sine of the rotation; kind is the class index.
struct Figure {
  int32_t kind;
  float x, y, radius, c, s, grey;

  bool covers(float px, float py) const {
    float dx = px - x, dy = py - y;
    if (kind == 1) return dx * dx + dy * dy <= radius * radius;
    float u = (c * dx + s * dy) / radius, v = (c * dy - s * dx) / radius;  // rotated back, in units of the radius
    if (kind == 2) return std::max(std::abs(u), std::abs(v)) <= 0.8f;
    return v <= 0.5f && std::numbers::sqrt3_v<float> * std::abs(u) - v <= 1;  // equilateral, corners at distance 1
  }
};

/// The figures of one image of n x n, in drawing order.
std::vector<Figure> scene(uint32_t half, uint32_t sample, int64_t size, float& ground) {
  auto block = [&](int64_t k) {
    return random_block(0, half, scene_stream, (2 * most_shapes + 1) * uint64_t{sample} + static_cast<uint64_t>(k));
  };
  std::array<uint32_t, 4> first = block(0);
  auto n = static_cast<float>(size);
  ground = 60 + 60 * unit(first[1]);
  std::vector<Figure> figures(1 + first[0] % most_shapes);
  for (size_t k = 0; k < figures.size(); ++k) {
    std::array<uint32_t, 4> a = block(1 + 2 * static_cast<int64_t>(k)), b = block(2 + 2 * static_cast<int64_t>(k));
    float turn = 2 * std::numbers::pi_v<float> * unit(a[3]);
    bool dark = b[1] % 2 != 0;  // darker than the background
    figures[k] = {.kind = static_cast<int32_t>(1 + a[0] % (classes - 1)),
                  .x = n * (0.1f + 0.8f * unit(a[1])),
                  .y = n * (0.1f + 0.8f * unit(a[2])),
                  .radius = n * (0.1f + 0.15f * unit(b[0])),
                  .c = std::cos(turn),
                  .s = std::sin(turn),
                  .grey = dark ? ground * 0.6f * unit(b[2]) : ground + 30 + (215 - ground) * unit(b[2])};
  }
  return figures;
}

void draw(uint32_t half, uint32_t sample, int64_t size, std::byte* image, int32_t* label) {
  float ground = 0;
  std::vector<Figure> figures = scene(half, sample, size, ground);
  for (int64_t at = 0; at < size * size; ++at) {
    int64_t row = at / size, column = at % size;
    float x = static_cast<float>(column) + 0.5f, y = static_cast<float>(row) + 0.5f, grey = ground;
    label[at] = 0;
    for (const Figure& f : figures)
      if (f.covers(x, y)) {
        label[at] = f.kind;
        grey = f.grey;
      }
    uint32_t word = random_block(sample, half, noise_stream, static_cast<uint64_t>(at) / 4)[at % 4];
    float noise = 20 * (unit(word) + unit(word * 2654435761u) - 1);
    image[at] = static_cast<std::byte>(std::clamp(grey + noise, 0.f, 255.f));
  }
}

std::shared_ptr<TensorSet> make(const std::string& name, int64_t size, int64_t count, uint32_t half) {
  HostTensor images{{DType::u8, {count, 1, size, size}}, {}};
  images.bytes.resize(num_bytes(images.type));
  std::vector<int32_t> labels(static_cast<size_t>(count * size * size));
  for (int64_t i = 0; i < count; ++i)
    draw(half, static_cast<uint32_t>(i), size, images.bytes.data() + i * size * size, labels.data() + i * size * size);
  return std::make_shared<TensorSet>(
      name,
      std::vector<std::pair<std::string, HostTensor>>{{"input", std::move(images)},
                                                      {"label", host_tensor(DType::i32, {count, size, size}, labels)}},
      std::map<std::string, int64_t>{{"label", classes}});
}

struct Sizes {
  int64_t side = 64, train = 4096, test = 512;
};

Sizes sizes_of(const std::string& spec) {
  std::vector<std::string> parts = fields(spec, ':');
  Sizes s;
  int64_t* numbers[] = {&s.side, &s.train, &s.test};
  bool good = parts.size() >= 2 && parts.size() <= 4;
  for (size_t i = 1; good && i < parts.size(); ++i) {
    *numbers[i - 1] = parse_number<int64_t>(parts[i]).value_or(0);
    good = *numbers[i - 1] >= (i == 1 ? 8 : 1);
  }
  if (!good || s.side > 1024 || s.train > 1 << 20 || s.test > 1 << 20)
    throw invalid(
        fmt::format("data '{}': expected shapes:SIZE[:TRAIN[:TEST]], a size from 8 to 1024 and at most 2^20 images",
                    spec),
        use_one_of_the_forms(spec));
  return s;
}

Sources open(const std::string& spec, const OpenOptions&) {
  Sizes s = sizes_of(spec);
  return {make("shapes/train", s.side, s.train, 0), make("shapes/test", s.side, s.test, 1)};
}

}  // namespace

extern const DataForm shapes_form{
    .name = "shapes",
    .form = "shapes:SIZE[:TRAIN[:TEST]] (drawn discs, squares and triangles, a class per pixel)",
    .open = open,
    .takes_arguments = true,
    .generated_bytes = [](const std::string& spec) {
      Sizes s = sizes_of(spec);
      auto pixels = static_cast<uint64_t>((s.train + s.test) * s.side * s.side);
      return pixels * (1 + sizeof(int32_t));
    }};

}  // namespace tutti::data
