// Normalised images: torchvision's formula in float64, what predicts later has the same numbers, and nothing else does.
#include "nn/normalise.h"

#include <cmath>

#include "data/pixels.h"
#include "graph/functions.h"
#include "tests/train/files.h"
#include "train/run/trainer.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using nn::Normalise;
using test::expect_parts;
using test::message_of;

constexpr int64_t samples = 5, pixels = 6;

/// Images [channels, 2, 3] of bytes, or of floats from -3 on, and the label i % 2.
struct Images : data::Source {
  Images(int64_t channels, DType dtype) : Source("images"), channels(channels), dtype(dtype) {}
  int64_t size() const override { return samples; }
  std::vector<data::Column> columns() const override {
    return {{.name = "input", .type = {dtype, {channels, 2, 3}}},
            {.name = "label", .type = {DType::i32, {}}, .classes = 2}};
  }
  double value(int64_t sample, int64_t i) const {
    auto byte = static_cast<double>((sample * 71 + i * 37 + i * i * 5) % 256);
    return dtype == DType::u8 ? byte : static_cast<float>(byte / 50 - 3);
  }
  void read(const std::string& column, std::span<const int32_t> which, void* to) const override {
    size_t at = 0;
    for (int32_t s : which)
      if (column == "label")
        static_cast<int32_t*>(to)[at++] = s % 2;
      else
        for (int64_t i = 0; i < channels * pixels; ++i) store_element(dtype, to, at++, value(s, i));
  }
  int64_t channels;
  DType dtype;
};

/// Its prediction is what a model gets.
Task looking() {
  return Task([](nn::Builder& b, const Batch& x) {
    Value y = b.output(b.input(x["input"]));
    return Outcome{.loss_sum = sum(y), .weight = b.graph().full(b.master(), 1), .metrics = {}, .output = y};
  });
}

std::vector<float> seen(const Images& set, const Normalise& n) {
  Trainer trainer(select_device("reference:0"), looking(), {.inference = true, .eval_batch = 4, .normalise = n});
  return trainer.predict(set).as<float>();
}

void expect_formula(const Images& set, const Normalise& n) {
  std::vector<float> got = seen(set, n);
  ASSERT_EQ(got.size(), static_cast<size_t>(samples * set.channels * pixels));
  double scale = set.dtype == DType::u8 ? 255 : 1;
  for (size_t k = 0; k < got.size(); ++k) {
    auto i = static_cast<int64_t>(k) % (set.channels * pixels), c = n.mean.size() == 1 ? 0 : i / pixels;
    double x = set.value(static_cast<int64_t>(k) / (set.channels * pixels), i) / scale;
    double wanted = (x - n.mean[static_cast<size_t>(c)]) / n.std[static_cast<size_t>(c)];
    EXPECT_NEAR(got[k], wanted, 1e-6 * (1 + std::abs(wanted))) << k;
  }
}

TEST(Normalise, ImagesAreTakenByChannel) {
  Normalise imagenet = *nn::parse_normalise("imagenet");
  expect_formula({3, DType::u8}, imagenet);
  expect_formula({3, DType::f32}, imagenet);
  expect_formula({3, DType::u8}, {{0.5}, {0.25}});
  expect_formula({1, DType::u8}, *nn::parse_normalise("mnist"));
}

TEST(Normalise, WhatATextSays) {
  EXPECT_EQ(nn::parse_normalise("none"), std::nullopt);
  EXPECT_EQ(nn::parse_normalise("0.5,0.4:0.25,1"), (Normalise{{0.5, 0.4}, {0.25, 1}}));
  for (const char* name : {"imagenet", "cifar10", "mnist", "0.1,-2:3,1e-3"}) {
    auto n = nn::parse_normalise(name);
    ASSERT_TRUE(n) << name;
    EXPECT_EQ(nn::parse_normalise(n->text()), n) << name;
  }
  const std::pair<const char*, const char*> wrong[] = {{"0.5:x", "'x' is not a number"},
                                                       {"0.5:", "'' is not a number"},
                                                       {"0.5:0", "standard deviation 0 must be"},
                                                       {"0.5:-1", "standard deviation -1 must be"},
                                                       {"0.5:1e-60", "standard deviation 1e-60 must be"},
                                                       {"nan:1", "mean nan is not finite"},
                                                       {"0:inf", "standard deviation inf must be"},
                                                       {"0.5,0.5:0.5", "2 means and 1 standard deviations given"},
                                                       {"imagnet", "did you mean 'imagenet'?"},
                                                       {"1:2:3", "unknown"},
                                                       {"0.5:1e-30", "1e-30 is too small for the mean 0.5"}};
  for (auto [text, why] : wrong)
    expect_parts(message_of([&] { nn::parse_normalise(text); }), {std::string("normalise ") + text, why});
  expect_parts(message_of([] { nn::parse_normalise("foo"); }), {"none, data, MEAN:STD"});
  expect_parts(message_of([] { nn::parse_normalise("data"); }), {"no training set", "MEAN:STD"});
}

TEST(Normalise, WhatDoesNotFitIsNamed) {
  expect_parts(message_of([&] {
                 seen({1, DType::u8}, *nn::parse_normalise("imagenet"));
               }),
               {"values for 3 channels, but the images have 1", "give one value, or 1"});
  expect_parts(message_of([&] {
                 seen({1, DType::u8}, {{0.5}, {0}});
               }),
               {"the standard deviation in [0.001, 1]; given 0.5 and 0"});
  for (const Normalise& n : {Normalise{{200}, {50}}, Normalise{{-0.1}, {0.5}}, Normalise{{0.5}, {2}}})
    expect_parts(message_of([&] { seen({1, DType::u8}, n); }), {"normalise", n.text(), "[0, 1]"});
  expect_parts(message_of([&] { seen({1, DType::u8}, {{200}, {50}}); }), {"divide", "by 255"});
  expect_formula({1, DType::f32}, {{200}, {50}});  // floats are taken as they are
  Trainer flat(select_device("reference:0"), Task([](nn::Builder& b, const Batch& x) {
                 Value y = b.output(b.input(reshape(x["input"], {x.size(), -1})));
                 return Outcome{.loss_sum = sum(y), .weight = b.graph().full(b.master(), 1)};
               }),
               {.normalise = Normalise{{0.5}, {0.5}}});
  Images set(1, DType::u8);
  expect_parts(message_of([&] { flat.train(set, 1); }), {"normalise 0.5:0.5", "is not images [N, C, H, W]"});
}

TEST(Normalise, ACheckpointIsTakenBySuchATrainerAlone) {
  test::Folder folder;
  Images set(1, DType::u8);
  auto trainer = [&](std::optional<Normalise> n) {
    return Trainer(select_device("reference:0"), classification(nn::Sequential{nn::Flatten(), nn::Linear(2)}),
                   {.batch = 5, .normalise = std::move(n)});
  };
  Trainer first = trainer(Normalise{{0.4}, {0.2}});
  first.train(set, 3);
  first.save(folder / "a.safetensors");
  Trainer same = trainer(Normalise{{0.4}, {0.2}});
  same.load(folder / "a.safetensors");
  EXPECT_EQ(same.predict(set).as<float>(), first.predict(set).as<float>());
  for (std::optional<Normalise> other : {std::optional<Normalise>{}, std::optional(Normalise{{0.4}, {0.3}})})
    expect_parts(message_of([&] { trainer(other).load(folder / "a.safetensors"); }),
                 {"trained with normalise '0.4:0.2', but this run uses '" + (other ? other->text() : "none") + "'",
                  "normalise 0.4:0.2"});
  Trainer plain = trainer({});
  plain.train(set, 1);
  plain.save(folder / "b.safetensors");
  expect_parts(message_of([&] {
                 trainer(Normalise{{0.4}, {0.2}}).load(folder / "b.safetensors");
               }),
               {"trained with normalise 'none'", "normalise none"});
}

TEST(Normalise, AnAutoencoderStillGivesPixels) {
  Images set(1, DType::u8);
  auto loss = [&](std::optional<Normalise> n) {
    Trainer t(select_device("reference:0"), autoencoding(nn::Conv2d(1, 1)), {.batch = 5, .normalise = std::move(n)});
    t.prepare(set);
    for (const nn::Parameter& p : t.model_states()) {
      HostTensor x = t.state(p.name);
      for (size_t i = 0; i < static_cast<size_t>(num_elements(x.type.shape)); ++i)
        store_element(x.type.dtype, x.bytes.data(), i, p.name.ends_with("bias") ? 1 : 0);
      t.set_state(p.name, x);
    }
    return t.evaluate(set).loss;
  };
  double mean = 0;  // of the pixels: the loss of a constant 1 is log(1 + e) - mean
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t i = 0; i < pixels; ++i) mean += set.value(s, i) / 255 / static_cast<double>(samples * pixels);
  EXPECT_NEAR(loss({}), std::log(1 + std::exp(1.0)) - mean, 1e-5);
  EXPECT_EQ(loss(Normalise{{0.3}, {0.1}}), loss({}));
}

TEST(Normalise, PixelsAreMeasured) {
  for (DType dtype : {DType::u8, DType::f32}) {
    Images set(3, dtype);
    data::Pixels p = data::pixels_of(set);
    EXPECT_EQ(p.samples, samples);
    for (int64_t c = 0; c < 3; ++c) {
      double mean = 0, variance = 0, scale = dtype == DType::u8 ? 255 : 1;
      auto each = [&](auto f) {
        for (int64_t s = 0; s < samples; ++s)
          for (int64_t i = 0; i < pixels; ++i) f(set.value(s, c * pixels + i) / scale);
      };
      each([&](double x) { mean += x / (samples * pixels); });
      each([&](double x) { variance += (x - mean) * (x - mean) / (samples * pixels); });
      EXPECT_NEAR(p.mean[static_cast<size_t>(c)], mean, 1e-9);
      EXPECT_NEAR(p.deviation[static_cast<size_t>(c)], std::sqrt(variance), 1e-9);
    }
  }
  EXPECT_EQ(data::pixels_of(Images(1, DType::u8), 2).samples, 2);
}

TEST(Normalise, WhatCannotBeMeasuredIsNamed) {
  struct Black : Images {
    Black() : Images(1, DType::u8) {}
    void read(const std::string&, std::span<const int32_t> which, void* to) const override {
      std::fill_n(static_cast<uint8_t*>(to), which.size() * pixels, uint8_t{7});
    }
  };
  expect_parts(message_of([] { data::pixels_of(Black()); }),
               {"normalise data: channel 0 of images has the standard deviation 0", "MEAN:STD"});
  struct Tokens : Images {
    Tokens() : Images(1, DType::u8) {}
    std::vector<data::Column> columns() const override { return {{.name = "tokens", .type = {DType::i32, {4}}}}; }
  };
  expect_parts(message_of([] { data::pixels_of(Tokens()); }), {"normalise data: images has no images"});
}

}  // namespace
}  // namespace tutti
