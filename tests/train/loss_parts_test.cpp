// The loss of a linear head in parts: the same run, but the logits are never stored as a whole.
#include "graph/passes/loss_parts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/dataset.h"
#include "graph/ops.h"
#include "graph/passes/dce.h"
#include "graph/verify.h"
#include "tests/train/devices.h"
#include "tests/train/files.h"
#include "train/run/plan.h"
#include "train/run/trainer.h"
#include "train/step/programs.h"
#include "train/task/model.h"

namespace tutti {
namespace {

using namespace tutti::test;

constexpr int64_t all = int64_t{1} << 40;

/// A model and data for it, with logits [rows, classes] in a part of a step.
struct Case {
  std::string name;
  Task task;
  data::Sources data;
  TrainerOptions options;
  int64_t rows, classes;
  std::string head;  ///< the parameters behind the loss whose gradients are sums over rows begin with this
};

Case language(const std::string& name, TrainerOptions options, const std::string& head) {
  const ModelDef& model = find_model(name);
  const ModelOptions tiny{.size = "tiny"};
  const int64_t context = model.context(tiny);
  data::Sources data = data::open_data(model.synthetic(tiny, 64), {.context = context});
  Task task = model.task(tiny, *data.train);
  const int64_t classes = data.train->column("next").classes;
  options.eval_batch = 6;
  options.optimizer = Sgd{.lr = 0.1};
  return {name, std::move(task), data, options, options.batch / options.accumulate * context, classes, head};
}

/// A classifier whose head has a bias, and whose logits pass an elementwise function.
Case classifier(const std::string& name, TrainerOptions options, double smoothing = 0) {
  data::Split split = data::synthetic({12}, 10, 160, 40);
  data::Sources data{std::make_shared<data::Dataset>(std::move(split.train)),
                     std::make_shared<data::Dataset>(std::move(split.test))};
  Task task = classification(nn::Sequential{nn::Flatten(), nn::Linear(16), nn::Relu(), nn::Linear(10), nn::Tanh()},
                             {.label_smoothing = smoothing});
  options.eval_batch = 24;  // the second batch of the 40 samples is padded with labels that are ignored
  options.optimizer = Sgd{.lr = 0.1};
  return {name, std::move(task), data, options, options.batch / options.accumulate, 10, "3."};
}

std::vector<Case> cases() {
  return {classifier("classifier", {.batch = 32}),
          classifier("smoothing", {.batch = 32}, 0.1),
          classifier("weights", {.batch = 32, .balance = true}),
          classifier("accumulate", {.batch = 64, .accumulate = 2}),
          classifier("uneven", {.batch = 31}),
          classifier("lora", {.lora = nn::Lora{.rank = 2, .targets = {"1", "3"}}, .batch = 32}),
          language("gpt", {.batch = 4}, "transformer.wte"),
          language("llama", {.batch = 4, .recompute = all_blocks}, "model.embed_tokens")};
}

struct Trained {
  std::vector<float> losses;
  HostTensors states;
  EvalResult evaluated;
  uint64_t peak = 0;
};

Trained train(const Device& device, const Case& c, int64_t most, int64_t steps, Precision precision) {
  TrainerOptions o = c.options;
  o.most_logits = most;
  o.precision = precision;
  Trainer t(device, c.task, o);
  t.train(*c.data.train, steps);
  Trained out{.losses = t.losses(), .states = {}, .evaluated = t.evaluate(*c.data.test), .peak = t.peak_bytes()};
  for (const nn::Parameter& p : t.model_states()) out.states.emplace(p.name, t.state(p.name));
  EXPECT_EQ(t.planned_bytes(), t.peak_bytes()) << c.name;
  const uint64_t planned = RunPlanner(device, c.task, o, *c.data.train, c.data.test.get()).plan(o.batch).peak;
  EXPECT_EQ(planned, t.peak_bytes()) << c.name;
  return out;
}

/// The number of values with so many rows of logits.
int64_t logits_in(const Graph& g, int64_t rows, int64_t classes) {
  const Graph live = dce(g);
  return std::ranges::count_if(live.values(), [&](const ValueInfo& v) {
    const Shape& s = v.type.shape;
    return v.role == Role::temp && !s.empty() && s.back() == classes && num_elements(s) == rows * classes;
  });
}

Graph program(const Case& c, int64_t most, Precision precision = Precision::f32) {
  TrainerOptions o = c.options;
  o.most_logits = most;
  o.precision = precision;
  Programs programs(c.task, o);
  const InputLayout form = layout_of(*c.data.train, "set", true);
  return o.accumulate > 1 ? programs.accumulation(form, o.batch / o.accumulate) : programs.training(form, o.batch);
}

TEST(LossParts, NoValueHasAllLogits) {
  for (const Case& c : cases())
    for (Precision precision : {Precision::f32, Precision::bf16, Precision::f16}) {
      EXPECT_GT(logits_in(program(c, all, precision), c.rows, c.classes), 2) << c.name;
      const Graph g = program(c, c.rows * c.classes / 4, precision);
      verify(g);
      EXPECT_EQ(logits_in(g, c.rows, c.classes), 0) << c.name << " " << name(precision);
      EXPECT_GT(logits_in(g, c.rows % 4 ? 7 : c.rows / 4, c.classes), 2) << c.name << " " << name(precision);
    }
}

/// In f64 on the reference: all but sums over rows has the same bits, and these differ in the order of sums alone.
TEST(LossParts, AreTheSameStep) {
  const Device device = select_device("reference:0");
  for (const Case& c : cases()) {
    const Trained plain = train(device, c, all, 1, Precision::f64);
    const Trained parts = train(device, c, c.rows * c.classes / 4, 1, Precision::f64);
    ASSERT_EQ(parts.states.size(), plain.states.size());
    int64_t sums = 0;
    for (const auto& [name, x] : plain.states) {
      const HostTensor& y = parts.states.at(name);
      const bool summed = name.starts_with(c.head);
      sums += summed;
      if (!summed) {
        EXPECT_TRUE(x == y) << c.name << " " << name;
      }
      for (int64_t i = 0; i < num_elements(x.type.shape); ++i)
        ASSERT_NEAR(x.item(static_cast<size_t>(i)), y.item(static_cast<size_t>(i)), 1e-13) << c.name << " " << name;
    }
    EXPECT_GE(sums, 1) << c.name;
    EXPECT_NEAR(parts.losses[0], plain.losses[0], 1e-6 * std::abs(plain.losses[0])) << c.name;
    EXPECT_NEAR(parts.evaluated.loss, plain.evaluated.loss, 1e-12) << c.name;
    EXPECT_EQ(parts.evaluated.metrics, plain.evaluated.metrics) << c.name;
  }
}

struct LossPartsTest : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());
};

TEST_P(LossPartsTest, TrainAsWhole) {
  for (const Case& c : cases())
    for (auto [precision, tolerance] : {std::pair{Precision::f32, 2e-5}, {Precision::bf16, 2e-2}}) {
      if (c.name != (precision == Precision::f32 ? "lora" : "gpt")) continue;  // some drivers compile for long
      const Trained plain = train(device, c, all, 3, precision);
      const Trained parts = train(device, c, c.rows * c.classes / 4, 3, precision);
      ASSERT_EQ(parts.losses.size(), plain.losses.size());
      for (size_t i = 0; i < plain.losses.size(); ++i)
        EXPECT_NEAR(parts.losses[i], plain.losses[i], tolerance) << c.name << i;
      EXPECT_NEAR(parts.evaluated.loss, plain.evaluated.loss, tolerance) << c.name;
    }
}

/// With many classes, the logits are most of what a step needs.
TEST_P(LossPartsTest, TakeLessMemory) {
  const data::Split split = data::synthetic({8}, 500, 512, 64);
  const Task task = classification(nn::Sequential{nn::Linear(8), nn::Linear(500)});
  uint64_t peaks[2];
  for (int divided : {0, 1}) {
    TrainerOptions o{.optimizer = Sgd{}, .batch = 512, .most_logits = divided ? 64 * 500 : all, .eval_batch = 64};
    peaks[divided] = RunPlanner(device, task, o, split.train, nullptr).plan(512).peak;
    Trainer t(device, task, o);
    t.train(split.train, 2);
    EXPECT_EQ(t.peak_bytes(), peaks[divided]);
  }
  EXPECT_LT(peaks[1] + 3 * 512 * 500, peaks[0]) << "less by three quarters of the logits in f32, or more";
}

INSTANTIATE_TEST_SUITE_P(Devices, LossPartsTest, testing::ValuesIn(usable()), test_name);

// ---- where logits stay whole

struct Head {
  Graph g;
  Value logits, labels, loss;
  Head() {
    Value x = g.feed("x", {DType::f32, {8, 3}});
    logits = matmul(x, g.state("w", {DType::f32, {5, 3}}, StateRole::parameter), false, true);
    labels = g.feed("labels", {DType::i32, {8}});
    loss = cross_entropy(logits, labels, {.reduction = "sum"});
  }
  int64_t whole() { return logits_in(loss_in_parts(std::move(g), 10), 8, 5); }
};

TEST(LossParts, LogitsOfAProductAreDivided) {
  Head h;
  h.g.set_state("loss", h.loss);
  EXPECT_EQ(h.whole(), 0);
}

TEST(LossParts, LogitsThatAStateKeepsStayWhole) {
  Head h;
  h.g.set_state("loss", h.loss);
  h.g.set_state("logits", h.logits);
  EXPECT_GT(h.whole(), 0);
}

TEST(LossParts, LogitsWhoseRowsAreMixedStayWhole) {
  Head h;
  h.g.set_state("loss", h.loss + sum(softmax(h.logits, 0)));
  EXPECT_GT(h.whole(), 0);
}

TEST(LossParts, AGradientThatDependsOnTheLossStaysWhole) {
  Head h;
  h.g.set_state("loss", sum(softmax(h.logits, 1) * h.loss));
  EXPECT_GT(h.whole(), 0);
}

TEST(LossParts, LogitsWithoutAProductStayWhole) {
  Graph g;
  g.set_state("loss", cross_entropy(g.feed("x", {DType::f32, {8, 5}}) * 2.0, g.feed("y", {DType::i32, {8}})));
  EXPECT_GT(logits_in(loss_in_parts(std::move(g), 10), 8, 5), 0);
}

/// What reads the logits' product of all rows does not run in parts, and the values of all rows are the same.
TEST(LossParts, OtherReadersGetAllRows) {
  Head h;
  Value top = argmax(h.logits, {1});
  h.g.set_state("loss", h.loss);
  h.g.set_state("top", flip(top, {0}));
  const Graph g = loss_in_parts(std::move(h.g), 10);
  EXPECT_EQ(logits_in(g, 8, 5), 0);
  EXPECT_EQ(g.info(g.find_state("top")->after).type, (TensorType{DType::i32, {8}}));
}

TEST(LossParts, ThisIsTheRule) {
  const Case c = cases()[0];
  auto printed = [&](int64_t most) { return program(c, most).nodes().size(); };
  EXPECT_EQ(printed(c.rows * c.classes), printed(all));
  EXPECT_NE(printed(c.rows * c.classes - 1), printed(all));
  EXPECT_EQ(TrainerOptions().most_logits, int64_t{1} << 28);
}

}  // namespace
}  // namespace tutti
