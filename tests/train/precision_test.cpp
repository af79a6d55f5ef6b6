// Mixed precision and loss scaling, on every device that can be used here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "data/files/checkpoint.h"
#include "data/loader.h"
#include "graph/eval.h"
#include "graph/ops.h"
#include "tests/train/devices.h"
#include "tests/train/files.h"
#include "train/run/trainer.h"

namespace tutti {
namespace {

using namespace tutti::test;

const data::Split& vectors() {
  static const data::Split split = data::synthetic({32}, 4, 160, 32);
  return split;
}
const data::Split& images() {
  static const data::Split split = data::synthetic({1, 8, 8}, 4, 64, 16);
  return split;
}

nn::Sequential mlp() { return {nn::Flatten(), nn::Linear(16), nn::Gelu(), nn::Dropout(0.1), nn::Linear(4)}; }
nn::Sequential cnn() {
  return {nn::Conv2d(6, 3, {.padding = 1}), nn::Relu(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(4)};
}

/// A state of the trainer as a tensor for the evaluator.
Tensor tensor_of(Trainer& t, const std::string& name, const TensorType& type) {
  Tensor x(type);
  std::vector<float> values = t.read_state(name);
  std::copy(values.begin(), values.end(), x.at.begin());
  return x;
}

struct PrecisionTest : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());
  Task task() const { return classification(mlp()); }
  TrainerOptions options(Precision precision, double scale = 65536) const {
    return {.optimizer = Adam{.lr = 1e-2},
            .batch = 16,
            .eval_batch = 16,
            .precision = precision,
            .loss_scaling = {.initial = scale}};
  }
};

/// Trains two epochs in f32 and in `mixed` ones: about the same losses, and the same bits each time.
void expect_learns_as_f32(const PrecisionTest& test, const nn::Layer& model, const data::Split& set,
                          const std::vector<Precision>& mixed) {
  auto run = [&](Precision precision) {
    Trainer t(test.device, classification(model), test.options(precision, 1024));
    for (int epoch = 0; epoch < 2; ++epoch) t.train(set.train);
    t.evaluate(set.test);
    EXPECT_EQ(t.planned_bytes(), t.peak_bytes()) << name(precision);
    EXPECT_EQ(t.skipped_steps(), 0) << name(precision);
    EXPECT_EQ(t.loss_scale().has_value(), precision == Precision::f16);
    return std::pair(t.losses(), t.state_hash());
  };
  std::vector<float> exact = run(Precision::f32).first;
  EXPECT_LT(exact.back(), 0.9 * exact.front());
  for (Precision precision : mixed) {
    auto [losses, hash] = run(precision);
    double tolerance = precision == Precision::bf16 ? 3e-2 : 5e-3;
    ASSERT_EQ(losses.size(), exact.size());
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], exact[i], tolerance) << name(precision) << i;
    EXPECT_NE(losses, exact) << name(precision) << ": nothing was rounded";
    EXPECT_EQ(run(precision), std::pair(losses, hash)) << name(precision);
  }
}

TEST_P(PrecisionTest, AnMlpLearnsAsInF32AndTheSameEachTime) {
  expect_learns_as_f32(*this, mlp(), vectors(), {Precision::bf16, Precision::f16});
}

TEST_P(PrecisionTest, ACnnLearnsAsInF32AndTheSameEachTime) {
  std::vector<Precision> mixed = {Precision::bf16, Precision::f16};
  if (device.kind == DeviceKind::software && device.plugin != "reference" && !std::getenv("TUTTI_TEST_ALL"))
    mixed.pop_back();  // one is enough where the kernels take a minute to compile
  expect_learns_as_f32(*this, cnn(), images(), mixed);
}

// The state after a checkpoint is f32 whatever the model computes in.
TEST_P(PrecisionTest, WeightsAndOptimizerStayF32) {
  Folder f;
  for (Precision precision : {Precision::bf16, Precision::f16}) {
    Trainer t(device, task(), options(precision));
    t.train(vectors().train, 2);
    t.save(f / "c");
    Checkpoint c = read_checkpoint(f / "c");
    EXPECT_EQ(c.metadata.at("precision"), name(precision));
    std::set<std::string> scaling;
    for (const auto& [name, tensor] : c.tensors) {
      EXPECT_TRUE(tensor.type.dtype == DType::f32 || name.find('.') == std::string::npos) << name;
      if (is_loss_scaling(name)) scaling.insert(name);
    }
    EXPECT_EQ(scaling, precision == Precision::f16
                           ? (std::set<std::string>{"good_steps", "loss_scale", "skipped_steps"})
                           : std::set<std::string>{});
  }
}

// With a scale that overflows f16 every step leaves all state as it was and halves the scale, until a step fits. That
// step is the first update: its gradients, seen through SGD, are those of the float64 evaluator's f32 graph.
TEST_P(PrecisionTest, OverflowSkipsTheStepAndHalvesTheScale) {
  const data::Dataset& set = vectors().train;
  constexpr double lr = 0.5;
  nn::Sequential model = {nn::Linear(16), nn::Gelu(), nn::Linear(4)};
  TrainerOptions o = options(Precision::f16, 0x1p27);
  o.optimizer = Sgd{.lr = lr, .momentum = 0.9};
  Trainer t(device, classification(model), o);
  Programs programs(classification(model), {.optimizer = Sgd{}, .expose_gradients = true});
  InputLayout form = layout_of(set, "set", false);
  std::vector<nn::Parameter> parameters = programs.declare(form).parameters;
  std::map<std::string, Tensor> before, now;
  auto look = [&](auto& to) {
    for (const nn::Parameter& p : parameters) {
      to.insert_or_assign(p.name, tensor_of(t, p.name, p.type));
      to.insert_or_assign("optimizer.m." + p.name, tensor_of(t, "optimizer.m." + p.name, p.type));
    }
  };
  double scale = 0x1p27;
  int64_t skipped = 0;
  for (;; ++skipped, scale /= 2) {
    ASSERT_LT(skipped, 30) << "no step fits";
    if (skipped > 0) look(before);
    t.train(set, 1);
    look(now);
    if (t.skipped_steps() == skipped) break;
    ASSERT_EQ(t.skipped_steps(), skipped + 1);
    EXPECT_EQ(*t.loss_scale(), scale / 2);
    EXPECT_EQ(t.steps(), skipped + 1);
    for (auto& [name, x] : before) EXPECT_EQ(x.at, now.at(name).at) << name;
    for (const nn::Parameter& p : parameters)
      for (double m : now.at("optimizer.m." + p.name).at) ASSERT_EQ(m, 0) << p.name;
  }
  ASSERT_GE(skipped, 3);
  EXPECT_EQ(*t.loss_scale(), scale);

  Graph g = programs.training(form, 16);
  data::Batch batch =
      data::Batches(data::shuffled_order(set.size(), o.seed, 0), 16, data::Last::drop)[skipped % (set.size() / 16)];
  Tensor samples({DType::f32, {16, 32}}), labels({DType::i32, {16}});
  for (size_t i = 0; i < 16; ++i) {
    auto at = static_cast<size_t>(batch.indices[i]);
    for (size_t k = 0; k < 32; ++k)
      samples.at[32 * i + k] = load_element(DType::f32, set.samples.bytes.data(), 32 * at + k);
    labels.at[i] = set.labels[at];
  }
  std::map<std::string, Tensor> in = before;
  in.emplace("input", samples);
  in.emplace("label", labels);
  for (const nn::Parameter& p : parameters) {
    std::vector<double> expected = evaluate(g, in, {g.latest("gradient." + p.name)})[0].at;
    double largest = 0;
    for (double d : expected) largest = std::max(largest, std::abs(d));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR((before.at(p.name).at[i] - now.at(p.name).at[i]) / lr, expected[i], 0.02 * largest) << p.name << i;
      EXPECT_NEAR(now.at("optimizer.m." + p.name).at[i], expected[i], 0.02 * largest) << p.name << i;
    }
  }
}

// Adam's bias corrections count updates, not steps: after skipped steps the first update moves by lr in every weight
// whose gradient counts, as the very first one does.
TEST_P(PrecisionTest, SkippedStepsDoNotAgeAdam) {
  Trainer t(device, task(), options(Precision::f16, 0x1p27));
  std::vector<float> before, now;
  do {
    before = now;
    t.train(vectors().train, 1);
    now = t.read_state("1.weight");
  } while (t.skipped_steps() == t.steps() && t.steps() < 30);
  ASSERT_GE(t.steps(), 4);
  float largest = 0;
  for (size_t i = 0; i < now.size(); ++i) largest = std::max(largest, std::abs(now[i] - before[i]));
  EXPECT_NEAR(largest, 1e-2, 1e-4);
}

TEST_P(PrecisionTest, TheScaleDoublesAfterGoodSteps) {
  TrainerOptions o = options(Precision::f16, 64);
  o.loss_scaling.growth_interval = 4;
  Trainer t(device, task(), o);
  std::vector<double> scales;
  for (int i = 0; i < 9; ++i) {
    t.train(vectors().train, 1);
    scales.push_back(*t.loss_scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{64, 64, 64, 128, 128, 128, 128, 256, 256}));
  EXPECT_EQ(t.skipped_steps(), 0);
}

TEST_P(PrecisionTest, GoesOnFromACheckpointWithItsScale) {
  Folder f;
  TrainerOptions o = options(Precision::f16, 0x1p27);
  o.loss_scaling.growth_interval = 7;
  Trainer whole(device, task(), o), half(device, task(), o);
  whole.train(vectors().train);
  half.train(vectors().train, 3);  // in the middle of the skipped steps
  half.save(f / "c");
  o.loss_scaling.initial = 1;  // the checkpoint's counts
  Trainer rest(device, task(), o);
  rest.load(f / "c");
  EXPECT_EQ(rest.state_hash(), half.state_hash());
  rest.train(vectors().train);
  EXPECT_GT(rest.skipped_steps(), 3);
  EXPECT_EQ(rest.state_hash(), whole.state_hash());
  EXPECT_EQ(rest.loss_scale(), whole.loss_scale());
}

TEST_P(PrecisionTest, AnotherPrecisionIsAnError) {
  Folder f;
  Trainer t(device, task(), options(Precision::f32));
  t.train(vectors().train, 1);
  t.save(f / "c");
  Trainer other(device, task(), options(Precision::bf16));
  other.load(f / "c");
  expect_parts(message_of([&] { other.train(vectors().train, 1); }),
               {"trained in precision f32", "this run uses bf16", "precision f32"});
  Trainer scores(device, task(), options(Precision::bf16));  // evaluation may use any
  scores.load(f / "c");
  EXPECT_NEAR(scores.evaluate(vectors().test).loss, t.evaluate(vectors().test).loss, 2e-2);
}

TEST_P(PrecisionTest, LossScalingComesWhole) {
  Folder f;
  Trainer t(device, task(), options(Precision::f16));
  t.train(vectors().train, 1);
  t.save(f / "c");
  Checkpoint c = read_checkpoint(f / "c");
  for (const char* lost : {"loss_scale", "good_steps", "skipped_steps"}) {
    Checkpoint less = c;
    less.tensors.erase(lost);
    write_checkpoint(f / "less", less);
    Trainer other(device, task(), options(Precision::f16));
    other.load(f / "less");
    expect_parts(message_of([&] { other.train(vectors().train, 1); }),
                 {std::string("no tensor '") + lost + "'", "loss scaling"});
  }
}

/// Passes x on; its gradient is NaN.
struct WithoutGradient : nn::Module {
  Value forward(nn::Builder&, Value x) const override { return x + sqrt(x * 0); }
  std::string describe() const override { return "WithoutGradient"; }
};

TEST_P(PrecisionTest, GradientsThatNoScaleMendsAreAnError) {
  nn::Sequential model = {nn::Linear(8), WithoutGradient(), nn::Linear(4)};
  Trainer t(device, classification(model), options(Precision::f16, 0x1p-20));
  try {
    while (t.steps() < 10) {
      t.train(vectors().train, 1);
      EXPECT_EQ(*t.loss_scale(), std::ldexp(0x1p-20, -static_cast<int>(t.steps())));
    }
    FAIL() << "no NotFinite";
  } catch (const NotFinite& e) {
    EXPECT_EQ(e.step, 5);  // the one at 2^-24
    expect_parts(e.what(), {"gradients are not finite", "even with the smallest loss scale"});
    expect_parts(e.remedy, {"precision bf16"});
  }
  EXPECT_EQ(t.skipped_steps(), 5);
}

TEST_P(PrecisionTest, NamesAScaleThatCannotBe) {
  for (double scale : {0.0, -1.0, 1e38, double{NAN}})
    expect_parts(message_of([&] { Trainer(device, task(), options(Precision::f16, scale)); }), {"loss scale"});
}

INSTANTIATE_TEST_SUITE_P(Devices, PrecisionTest, testing::ValuesIn(usable()), test_name);

// What is computed in which dtype, read from the graph.
TEST(PrecisionGraph, ProductsAreShortLossAndUpdateAreF32) {
  nn::Sequential model = {nn::Conv2d(6, 3), nn::Relu(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(4)};
  for (Precision precision : {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    InputLayout form{
        .name = "set",
        .columns = {{.name = "input", .type = {DType::u8, {1, 8, 8}}}, {.name = "label", .type = {DType::i32, {}}}},
        .tables = {}};
    Graph g = Programs(classification(model), {.precision = precision}).training(form, 16);
    std::map<std::string, std::set<DType>> seen;
    for (const Node& n : g.nodes())
      seen[n.op->name].insert(g.info(n.inputs.empty() ? n.results[0] : n.inputs[0]).type.dtype);
    std::set<DType> compute{compute_dtype(precision)}, wide{DType::f32};
    for (const char* op : {"matmul", "conv2d", "conv2d_dw", "max_pool2d", "relu"}) EXPECT_EQ(seen[op], compute) << op;
    for (const char* op : {"cross_entropy", "softmax", "adam"}) EXPECT_EQ(seen[op], wide) << op;
    EXPECT_EQ(g.find_state("loss_scale") != nullptr, precision == Precision::f16);
  }
}

TEST(PrecisionNames, AreReadAndWritten) {
  for (const char* text : {"f32", "tf32", "bf16", "f16"}) EXPECT_EQ(name(parse_precision(text)), text);
  expect_parts(message_of([] { parse_precision("f8"); }), {"precision f8", "f32, tf32, bf16, f16"});
}

}  // namespace
}  // namespace tutti
