// Quantised weights: the numbers, and that models which keep them compute what models of the numbers they stand for do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/files/gguf.h"
#include "nn/modules.h"
#include "tests/support/require.h"
#include "tests/train/files.h"
#include "train/io/weights.h"
#include "train/run/trainer.h"

namespace tutti {
namespace {

using nn::WeightFormat;
using test::expect_parts;
using test::message_of;

HostTensor waves(Shape shape, double frequency) {
  std::vector<float> x(static_cast<size_t>(num_elements(shape)));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(frequency * static_cast<double>(i)));
  return host_tensor(DType::f32, shape, x);
}

TEST(Quantized, EachNumberIsWithinHalfAStep) {
  HostTensor x = waves({3, 64}, 0.7);
  for (int64_t bits : {4, 8}) {
    QuantizedTensor t = quantized(x, bits);
    EXPECT_EQ(t.quants.type.shape, (Shape{3, 8 * bits}));
    HostTensor y = dequantized(t);
    double step = 2.0 / (bits == 4 ? 15 : 255);  // from -1 to 1
    for (size_t i = 0; i < 192; ++i) EXPECT_NEAR(y.item(i), x.item(i), 0.51 * step + 5e-4) << bits;
    EXPECT_EQ(dequantized(with_form(t, {.bits = 8})), y) << "4 bits as 8 lose nothing";
  }
  QuantizedTensor one = quantized(host_tensor(DType::f32, {1, 32}, std::vector<float>(32, 0.25f)), 4);
  EXPECT_EQ(dequantized(one).item(7), 0.25);
  expect_parts(message_of([] { quantized(waves({3, 33}, 1), 4); }), {"f32[3, 33]", "multiples of 32"});
  expect_parts(message_of([] {
                 quantized(host_tensor(DType::f32, {1, 32}, std::vector<float>(32, 1e6f)), 4);
               }),
               {"1000000", "outside the range that can be quantized"});
}

TEST(Quantized, BlocksOfFilesStandForTheSameNumbers) {
  size_t read = 0;
  for (const char* name : {"/types.gguf", "/llama.gguf"}) {
    Gguf file(GGUF_DIR + std::string(name));
    for (const GgufTensor& t : file.tensors())
      if (std::optional<QuantizedTensor> q = file.read_quantized(t)) {
        EXPECT_EQ(dequantized(*q).as<float>(), file.read(t).as<float>()) << t.name << " " << t.type->name;
        ++read;
      }
  }
  EXPECT_GE(read, 12u);
}

class QuantizedModels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override try { device = select_device(GetParam()); } catch (const Error& e) {
    test::skip_without(GetParam(), e.what());
  }
  Device device;
};

Task task() { return regression(nn::Sequential{nn::Linear(96), nn::Tanh(), nn::Linear(3)}); }

data::TensorSet samples() { return {"waves", {{"input", waves({40, 64}, 0.37)}, {"target", waves({40, 3}, 1.1)}}}; }

HostTensors weights() {
  return {{"0.weight", waves({96, 64}, 0.91)},
          {"0.bias", waves({96}, 0.3)},
          {"2.weight", waves({3, 96}, 1.3)},
          {"2.bias", waves({3}, 0.8)}};
}

/// What matrices of blocks become by being quantised.
HostTensors rounded(HostTensors all, int64_t bits) {
  for (const char* name : {"0.weight", "2.weight"}) all.at(name) = dequantized(quantized(all.at(name), bits));
  return all;
}

TEST_P(QuantizedModels, PredictAsTheirNumbersDo) {
  data::TensorSet set = samples();
  for (int64_t bits : {4, 8})
    for (int64_t batch : {1, 40}) {  // products of few rows have a kernel
      Trainer wide(select_device("reference:0"), task(), {.inference = true, .eval_batch = batch});
      wide.start_from(rounded(weights(), bits), "rounded");
      Trainer narrow(
          device, task(),
          {.frozen = bits == 4 ? WeightFormat::int4 : WeightFormat::int8, .inference = true, .eval_batch = batch});
      narrow.start_from(weights(), "weights");
      std::vector<float> a = wide.predict(set).as<float>(), b = narrow.predict(set).as<float>();
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << bits << " bits, batch " << batch;
      EXPECT_EQ(narrow.parameter_count(), 96 * 64 + 96 + 3 * 96 + 3);
      EXPECT_EQ(narrow.state("0.weight"), rounded(weights(), bits).at("0.weight"));
    }
}

TEST_P(QuantizedModels, AdaptersTrainBesideThem) {
  data::TensorSet set = samples();
  nn::Lora lora{.rank = 2, .alpha = 4, .targets = {"0", "2"}};
  TrainerOptions options{.optimizer = Sgd{.lr = 0.05}, .lora = lora, .batch = 20};
  Trainer wide(select_device("reference:0"), task(), options);
  wide.start_from(rounded(weights(), 4), "rounded");
  options.frozen = WeightFormat::int4;
  Trainer narrow(device, task(), options);
  narrow.start_from(weights(), "weights");
  for (int k = 0; k < 5; ++k) {
    wide.train(set);
    narrow.train(set);
  }
  for (size_t i = 0; i < wide.losses().size(); ++i) EXPECT_NEAR(narrow.losses()[i], wide.losses()[i], 1e-4) << i;
  EXPECT_LT(narrow.losses().back(), 0.9 * narrow.losses().front());
}

TEST_P(QuantizedModels, ComeBackFromACheckpoint) {
  test::Folder folder;
  data::TensorSet set = samples();
  TrainerOptions options{.optimizer = Sgd{.lr = 0.05},
                         .lora = nn::Lora{.rank = 2, .alpha = 4, .targets = {"0"}},
                         .frozen = WeightFormat::int4,
                         .batch = 20};
  Trainer first(device, task(), options);
  first.start_from(weights(), "weights");
  first.train(set);
  first.save(folder / "run.safetensors");
  Trainer second(device, task(), options);
  second.load(folder / "run.safetensors");
  EXPECT_EQ(second.evaluate(set).loss, first.evaluate(set).loss);
  options.frozen = WeightFormat::int8;  // wider: the same numbers
  Trainer third(device, task(), options);
  third.load(folder / "run.safetensors");
  EXPECT_NEAR(third.evaluate(set).loss, first.evaluate(set).loss, 1e-5);
}

/// A matrix in any form, of quants and scales of all kinds.
QuantizedTensor made(int64_t rows, int64_t columns, QuantForm form) {
  QuantizedTensor t = blank_quantized(rows, columns, form);
  auto fill = [](HostTensor& part, int first, int step, int most) {
    for (size_t i = 0; i < part.bytes.size(); ++i)
      part.bytes[i] = static_cast<std::byte>(first + static_cast<int>(i) * step % most);
  };
  fill(t.quants, 0, 89, 256);
  if (form.nested) {
    fill(t.scales, 128 - 20, 37, 63);
    fill(t.mins, 128 - 31, 29, 63);
  }
  const double most = form.bits == 4 ? 15 : 255;
  for (HostTensor* part : {&t.scales, &t.mins, &t.scale_units, &t.min_units})
    if (!part->bytes.empty() && is_float(part->type.dtype))
      for (size_t i = 0; i < static_cast<size_t>(num_elements(part->type.shape)); ++i)
        store_element(part->type.dtype, part->bytes.data(), i,
                      (part == &t.scales || part == &t.scale_units ? 1 / most : -0.5) * (0.01 + 0.001 * double(i % 7)));
  return t;
}

const QuantForm forms[] = {{.bits = 8},
                           {.bits = 4, .group = 32, .nested = true},
                           {.bits = 4, .group = 16, .nested = true},
                           {.bits = 8, .group = 32, .nested = true},
                           {.bits = 8, .group = 16, .nested = true}};

Task wide_task() { return regression(nn::Sequential{nn::Linear(256), nn::Tanh(), nn::Linear(3)}); }
data::TensorSet wide_samples() {
  return {"wide", {{"input", waves({40, 512}, 0.37)}, {"target", waves({40, 3}, 1.1)}}};
}

/// Weights of wide_task(), quantised and as their numbers.
std::pair<HostTensors, HostTensors> in_form(QuantForm form) {
  HostTensors narrow = {{"0.bias", waves({256}, 0.3)}, {"2.bias", waves({3}, 0.8)}}, wide = narrow;
  for (auto [name, rows, columns] : {std::tuple{"0.weight", 256, 512}, {"2.weight", 3, 256}}) {
    wide.emplace(name, dequantized(made(rows, columns, form)));
    put_quantized(narrow, name, made(rows, columns, form));
  }
  return {narrow, wide};
}

TEST_P(QuantizedModels, KeepTheFormsOfFiles) {
  data::TensorSet set = wide_samples();
  const bool builds_kernels = GetParam() == std::string("opencl") || GetParam() == std::string("vulkan");
  for (QuantForm form : forms)
    for (int64_t batch : {1, 40}) {
      // Building kernels takes long; parity compares the ops in every form.
      if (builds_kernels && form != (batch == 1 ? forms[4] : forms[1])) continue;
      SCOPED_TRACE(fmt::format("{} bits, group {}, nested {}, batch {}", form.bits, form.group, form.nested, batch));
      auto [quantised, numbers] = in_form(form);
      Trainer wide(select_device("reference:0"), wide_task(), {.inference = true, .eval_batch = batch});
      wide.start_from(numbers, "numbers");
      Trainer narrow(device, wide_task(), {.frozen = WeightFormat::file, .inference = true, .eval_batch = batch});
      narrow.start_from(quantised, "file");
      std::vector<float> a = wide.predict(set).as<float>(), b = narrow.predict(set).as<float>();
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4);
      EXPECT_EQ(narrow.state("0.weight"), numbers.at("0.weight"));
      EXPECT_EQ(states_of(narrow.model_states()[0]).size(), form.nested ? 5u : 3u);
    }
}

TEST_P(QuantizedModels, AdaptersOfFilesComeBack) {
  test::Folder folder;
  data::TensorSet set = wide_samples();
  TrainerOptions options{
      .optimizer = Sgd{.lr = 0.05}, .lora = nn::Lora{.rank = 2, .alpha = 4, .targets = {"0", "2"}}, .batch = 20};
  auto [quantised, numbers] = in_form(forms[1]);
  Trainer wide(select_device("reference:0"), wide_task(), options);
  wide.start_from(numbers, "numbers");
  options.frozen = WeightFormat::file;
  Trainer narrow(device, wide_task(), options);
  narrow.start_from(quantised, "file");
  for (int k = 0; k < 3; ++k) {
    wide.train(set);
    narrow.train(set);
  }
  for (size_t i = 0; i < wide.losses().size(); ++i) EXPECT_NEAR(narrow.losses()[i] / wide.losses()[i], 1, 2e-4) << i;
  narrow.save(folder / "run.safetensors");
  Trainer again(device, wide_task(), options);
  again.load(folder / "run.safetensors");
  EXPECT_EQ(again.evaluate(set).loss, narrow.evaluate(set).loss);
  options.frozen = WeightFormat::compute;  // dequantised: the same numbers
  Trainer plain(device, wide_task(), options);
  plain.load(folder / "run.safetensors");
  EXPECT_NEAR(plain.evaluate(set).loss / narrow.evaluate(set).loss, 1, 2e-4);
}

TEST(Quantized, FilesWithoutQuantizedMatricesAreRefused) {
  data::TensorSet set = samples();
  Trainer t(select_device("reference:0"), task(), {.frozen = WeightFormat::file, .inference = true});
  t.start_from(weights(), "weights");
  expect_parts(message_of([&] { t.evaluate(set); }), {"quantize file", "the file has no quantized matrix", "GGUF"});
}

INSTANTIATE_TEST_SUITE_P(Devices, QuantizedModels, testing::Values("reference", "onednn", "opencl", "vulkan"));

TEST(Quantized, NeedsWeightsToStartFrom) {
  data::TensorSet set = samples();
  Trainer t(select_device("reference:0"), task(), {.frozen = WeightFormat::int8, .inference = true});
  expect_parts(message_of([&] { t.evaluate(set); }), {"quantized weights must be loaded from a file", "init FILE"});
  EXPECT_NE(
      message_of([&] { Trainer(select_device("reference:0"), task(), {.ema = 0.9, .frozen = WeightFormat::int8}); }),
      "");
}

TEST(Inference, TrainsNothing) {
  data::TensorSet set = samples();
  Trainer t(select_device("reference:0"), task(), {.inference = true, .batch = 20});
  EXPECT_NE(message_of([&] { t.train(set); }), "");
}

}  // namespace
}  // namespace tutti
