// Every transform against float64 code of the test's own, from the random numbers that Philox gives; and the list.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <set>

#include "core/base/philox.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "tests/train/files.h"

namespace tutti::data {
namespace {

using namespace tutti::test;

constexpr int64_t C = 3, H = 6, W = 9, N = 64;
constexpr uint64_t seed = 0x123456789;

/// Images of random pixels, and a label.
const TensorSet& images(DType dtype = DType::u8) {
  static std::map<DType, TensorSet> sets;
  auto it = sets.find(dtype);
  if (it != sets.end()) return it->second;
  std::vector<uint8_t> pixels(static_cast<size_t>(N * C * H * W));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(random_block(7, 0, 0, i / 4)[i % 4]);
  HostTensor t = host_tensor(DType::u8, {N, C, H, W}, pixels),
             labels = host_tensor(DType::i32, {N}, std::vector<int32_t>(N));
  return sets.emplace(dtype, TensorSet("random", {{"input", t.to(dtype)}, {"label", labels}})).first->second;
}

/// The words that transform number `place` draws for a sample.
struct Words {
  int32_t sample;
  uint32_t epoch, place = 0, at = 0;
  uint32_t next() {
    uint32_t word = random_block(seed, epoch, 0x64617480 + place, static_cast<uint64_t>(sample) * 256 + at / 4)[at % 4];
    ++at;
    return word;
  }
  int64_t below(int64_t n) {
    return static_cast<int64_t>(std::ldexp(static_cast<double>(next()) * static_cast<double>(n), -32));
  }
  double between(double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(next() >> 8), -24);
  }
};

using Planes = std::vector<double>;  // [C, H, W]
double pixel(const Planes& p, int64_t c, int64_t y, int64_t x) {
  return y < 0 || y >= H || x < 0 || x >= W ? 0 : p[static_cast<size_t>((c * H + y) * W + x)];
}
template <class F>
Planes made(F f) {
  Planes out;
  for (int64_t c = 0; c < C; ++c)
    for (int64_t y = 0; y < H; ++y)
      for (int64_t x = 0; x < W; ++x) out.push_back(f(c, y, x));
  return out;
}

std::vector<Planes> original(DType dtype) {
  std::vector<Planes> all;
  std::vector<float> values = read_samples(images(dtype), "input", sequential_order(N)).to(DType::f32).as<float>();
  for (int64_t i = 0; i < N; ++i)
    all.emplace_back(values.begin() + i * C * H * W, values.begin() + (i + 1) * C * H * W);
  return all;
}

std::vector<Planes> changed(const std::string& list, DType dtype, uint32_t epoch = 2) {
  std::vector<int32_t> order = sequential_order(N);
  HostTensor t = read_samples(images(dtype), "input", order);
  Augment(list).change(images(dtype), seed, epoch)("input", order, t.bytes.data());
  std::vector<float> values = t.to(DType::f32).as<float>();
  std::vector<Planes> all;
  for (int64_t i = 0; i < N; ++i)
    all.emplace_back(values.begin() + i * C * H * W, values.begin() + (i + 1) * C * H * W);
  return all;
}

/// Holds the transform to `want`, of the image and its words; u8 is rounded.
template <class F>
void expect(const std::string& list, F want) {
  for (DType dtype : {DType::u8, DType::f32}) {
    std::vector<Planes> before = original(dtype), after = changed(list, dtype);
    int different = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      Words words{static_cast<int32_t>(i), 2};
      Planes w = want(before[i], words, dtype == DType::u8);
      // f32 arithmetic on numbers up to 255, and a value in the middle between two u8.
      for (size_t k = 0; k < w.size(); ++k)
        ASSERT_NEAR(after[i][k], w[k], dtype == DType::u8 ? 0.501 : 2e-3)
            << list << ", sample " << i << ", pixel " << k;
      different += after[i] != before[i];
    }
    EXPECT_GT(different, N / 4) << list;
  }
}

TEST(Transforms, Crop) {
  expect("crop:3", [](const Planes& p, Words& w, bool) {
    int64_t down = w.below(7) - 3, right = w.below(7) - 3;
    return made([&](int64_t c, int64_t y, int64_t x) { return pixel(p, c, y + down, x + right); });
  });
}

TEST(Transforms, Flip) {
  expect("flip", [](const Planes& p, Words& w, bool) {
    bool turned = w.below(2) == 1;
    return made([&](int64_t c, int64_t y, int64_t x) { return pixel(p, c, y, turned ? W - 1 - x : x); });
  });
}

TEST(Transforms, Cutout) {
  for (int64_t side : {3, 4})
    expect("cutout:" + std::to_string(side), [side](const Planes& p, Words& w, bool) {
      int64_t cy = w.below(H), cx = w.below(W);
      auto within = [&](int64_t at, int64_t centre) {
        return std::abs(2 * (at - centre) + (side % 2 == 0 ? 1 : 0)) < side;
      };
      return made(
          [&](int64_t c, int64_t y, int64_t x) { return within(y, cy) && within(x, cx) ? 0 : pixel(p, c, y, x); });
    });
}

/// The bilinear weights of all pixels, as hats of width 1 around the place that a pixel comes from.
TEST(Transforms, Rotate) {
  expect("rotate:30", [](const Planes& p, Words& w, bool) {
    double a = w.between(-30, 30) * std::numbers::pi / 180;
    return made([&](int64_t c, int64_t y, int64_t x) {
      double dx = static_cast<double>(x) - (W - 1) / 2.0, dy = static_cast<double>(y) - (H - 1) / 2.0;
      double u = std::cos(a) * dx + std::sin(a) * dy + (W - 1) / 2.0,
             v = std::cos(a) * dy - std::sin(a) * dx + (H - 1) / 2.0;
      double total = 0;
      for (int64_t j = 0; j < H; ++j)
        for (int64_t i = 0; i < W; ++i)
          total += pixel(p, c, j, i) * std::max(0.0, 1 - std::abs(v - static_cast<double>(j))) *
                   std::max(0.0, 1 - std::abs(u - static_cast<double>(i)));
      return total;
    });
  });
}

TEST(Transforms, Jitter) {
  expect("jitter:0.5", [](const Planes& p, Words& w, bool limited) {
    auto clamp = [&](double v) { return limited ? std::clamp(v, 0.0, 255.0) : v; };
    auto grey = [](const Planes& q, int64_t y, int64_t x) {
      return 0.299 * pixel(q, 0, y, x) + 0.587 * pixel(q, 1, y, x) + 0.114 * pixel(q, 2, y, x);
    };
    double factor = w.between(0.5, 1.5), mean = 0;
    Planes bright = made([&](int64_t c, int64_t y, int64_t x) { return clamp(factor * pixel(p, c, y, x)); });
    for (int64_t y = 0; y < H; ++y)
      for (int64_t x = 0; x < W; ++x) mean += grey(bright, y, x) / (H * W);
    factor = w.between(0.5, 1.5);
    Planes steep = made(
        [&](int64_t c, int64_t y, int64_t x) { return clamp(factor * pixel(bright, c, y, x) + (1 - factor) * mean); });
    factor = w.between(0.5, 1.5);
    return made([&](int64_t c, int64_t y, int64_t x) {
      return clamp(factor * pixel(steep, c, y, x) + (1 - factor) * grey(steep, y, x));
    });
  });
}

TEST(Transforms, ListsGoInOrder) {
  expect("flip,crop:2", [](const Planes& p, Words& w, bool) {
    bool turned = w.below(2) == 1;
    w.at = 0;
    w.place = 1;
    int64_t down = w.below(5) - 2, right = w.below(5) - 2;
    return made([&](int64_t c, int64_t y, int64_t x) {
      int64_t from = x + right;
      return from < 0 || from >= W ? 0 : pixel(p, c, y + down, turned ? W - 1 - from : from);
    });
  });
}

// Whatever batch a sample is in: the same change in one epoch, another one in the next, and only of the images.
TEST(Augment, DependsOnSeedEpochAndSampleAlone) {
  const char* list = "crop:2,flip,rotate:20,cutout:3,jitter";
  std::vector<Planes> all = changed(list, DType::u8);
  EXPECT_NE(all, changed(list, DType::u8, 3));
  Change change = Augment(list).change(images(), seed, 2);
  for (int32_t i : {0, 5, 63}) {
    HostTensor t = read_samples(images(), "input", std::array{i});
    change("input", std::array{i}, t.bytes.data());
    std::vector<float> values = t.to(DType::f32).as<float>();
    EXPECT_EQ(Planes(values.begin(), values.end()), all[static_cast<size_t>(i)]);
  }
  std::array<std::byte, 4> label = {std::byte{1}};
  change("label", std::array{1}, label.data());
  EXPECT_EQ(label[0], std::byte{1});
  EXPECT_FALSE(Augment("none").change(images(), seed, 0));
  EXPECT_TRUE(Augment("").empty());
}

TEST(Augment, SaysWhatIsWrong) {
  auto error = [](const std::string& list) { return message_of([&] { Augment{list}; }); };
  expect_parts(error("flop"), {"augment flop", "unknown augmentation 'flop'", "did you mean 'flip'"});
  expect_parts(error("crop:4,,flip"), {"unknown augmentation ''", "crop, cutout, flip, jitter or rotate"});
  expect_parts(error("crop:x"), {"'crop:x'", "crop:N with an integer N from 1 to 1024"});
  expect_parts(error("cutout:2.5"), {"an integer"});
  expect_parts(error("rotate:181"), {"a number N from 0 to 180"});
  expect_parts(error("rotate:nan"), {"a number N from 0 to 180"});
  expect_parts(error("jitter:0.1:2"), {"'jitter:0.1:2'", "from 0 to 1"});
  expect_parts(error("flip:2"), {"'flip:2', expected flip without a number"});
  auto column = [](Shape shape) {
    return HostTensor{{DType::u8, shape}, std::vector<std::byte>(static_cast<size_t>(num_elements(shape)))};
  };
  expect_parts(message_of([&] {
                 Augment("flip").check(TensorSet("table", {{"input", column({2, 8})}}));
               }),
               {"'input' of table is u8[8]", "augment none"});
  expect_parts(
      message_of([&] {
        Augment("flip").check(TensorSet("seg", {{"input", column({2, 1, 4, 5})}, {"label", column({2, 4, 5})}}));
      }),
      {"column 'label' has a value for every pixel"});
  expect_parts(message_of([&] {
                 Augment("flip").check(TensorSet("text", {{"tokens", column({2, 8})}}));
               }),
               {"text has no column 'input'", "augment none"});
  Augment("flip").check(images());
}

TEST(Augment, WhatWouldLeaveABlackImageIsRefused) {
  HostTensor wide{{DType::u8, {2, 1, 6, 9}}, std::vector<std::byte>(2 * 6 * 9)};
  TensorSet set("wide", {{"input", wide}});
  for (const char* list : {"crop:5", "cutout:8", "flip,rotate:90"}) Augment(list).check(set);
  expect_parts(message_of([&] { Augment("flip,crop:6").check(set); }),
               {"augment crop:6", "9x6", "it could remove whole images", "crop:5 or less"});
  expect_parts(message_of([&] { Augment("cutout:9").check(set); }), {"augment cutout:9", "cutout:8 or less"});
  HostTensor one{{DType::u8, {2, 1, 1, 1}}, std::vector<std::byte>(2)};
  expect_parts(message_of([&] { Augment("crop:1").check(TensorSet("one", {{"input", one}})); }), {"omit it"});
}

}  // namespace
}  // namespace tutti::data
