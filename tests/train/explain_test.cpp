// Trainer::explain: the gradient of the top class's logit by the pixels, times the pixels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/train/devices.h"
#include "train/run/trainer.h"

namespace tutti {
namespace {

using namespace tutti::test;

constexpr int64_t images = 3, classes = 4, channels = 2, height = 6, width = 5;

nn::Sequential cnn() { return {nn::Conv2d(4, 3, {.padding = 1}), nn::Tanh(), nn::Flatten(), nn::Linear(classes)}; }

/// Images of numbers in (0, 1); a step of `shift` at one pixel of all of them.
data::TensorSet drawn(size_t at = 0, float shift = 0) {
  std::vector<float> pixels(images * channels * height * width);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = 0.5F + 0.4F * std::sin(static_cast<float>(7 * i + i * i % 13));
  const size_t each = channels * height * width;
  for (size_t n = 0; n < images; ++n) pixels[n * each + at] += shift;
  return data::TensorSet("drawn",
                         {{"input", host_tensor(DType::f32, {images, channels, height, width}, pixels)},
                          {"label", host_tensor(DType::i32, {images}, std::vector<int32_t>{0, 1, 2})}},
                         {{"label", classes}});
}

std::vector<float> numbers(const HostTensor& t) { return t.to(DType::f32).as<float>(); }

struct Explain : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());
  static TrainerOptions options() {
    return {.batch = images, .eval_batch = 2, .normalise = nn::Normalise{{0.4, 0.6}, {0.2, 0.3}}};
  }
};

TEST_P(Explain, IsTheGradientTimesThePixels) {
  Trainer t(device, classification(cnn()), options());
  data::TensorSet set = drawn();
  t.prepare(set);
  const HostTensor e = t.explain(set);
  ASSERT_EQ(e.type, (TensorType{DType::f32, {images, channels, height, width}}));
  const std::vector<float> found = numbers(e), pixels = numbers(data::read_samples(set, "input", std::vector{0, 1, 2}));
  const std::vector<float> y = numbers(t.predict(set));
  const size_t each = channels * height * width;
  constexpr float h = 1.0F / 64;
  double most = 0;
  for (size_t at = 0; at < each; ++at) {
    const std::vector<float> up = numbers(t.predict(drawn(at, h))), down = numbers(t.predict(drawn(at, -h)));
    for (size_t n = 0; n < images; ++n) {
      const auto* row = &y[n * classes];
      const size_t top = n * classes + static_cast<size_t>(std::max_element(row, row + classes) - row);
      const double slope = (double{up[top]} - down[top]) / (2 * h), x = pixels[n * each + at];
      EXPECT_NEAR(found[n * each + at], slope * x, 2e-3) << "pixel " << at << " of image " << n;
      most = std::max(most, std::abs(slope * x));
    }
  }
  EXPECT_GT(most, 0.05);  // the bound above is less
}

TEST_P(Explain, NeedsImagesAndARowOfNumbers) {
  Trainer flat(device, classification({nn::Linear(classes)}), {.batch = 2});
  data::TensorSet rows("rows",
                       {{"input", host_tensor(DType::f32, {2, 3}, std::vector<float>(6))},
                        {"label", host_tensor(DType::i32, {2}, std::vector<int32_t>{0, 1})}},
                       {{"label", classes}});
  try {
    flat.explain(rows);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the model reads no images"), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Explain, testing::ValuesIn(usable()), test_name);

}  // namespace
}  // namespace tutti
