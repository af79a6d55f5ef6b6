// A step in parts is the step of the whole batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "graph/functions.h"
#include "graph/lower/group.h"
#include "graph/ops.h"
#include "tests/train/devices.h"
#include "tests/train/files.h"
#include "train/run/plan.h"
#include "train/run/trainer.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace tutti::test;

nn::Sequential mlp() { return {nn::Flatten(), nn::Linear(64), nn::Relu(), nn::Linear(4)}; }

/// 60 samples: batches of 24 leave 12, two thirds of a part of 8 among them.
const data::Dataset& samples() {
  static const data::Split split = data::synthetic({32}, 4, 60, 8);
  return split.train;
}

/// Samples of one class do not count, so that parts differ in weight.
Outcome masked(nn::Builder& b, const Batch& batch) {
  Value y = b("model", mlp(), cast(batch["input"], b.master())), label = batch.class_ids("label", 4);
  Value counts = cast(less(label, label.like(3)), b.master());
  return {sum(cast(sum(y * y, {1}), b.master()) * counts), sum(counts)};
}

/// How many of 64 numbers a dropout of one half left, of each sample.
Outcome dropped(nn::Builder& b, const Batch& batch) {
  Value x = batch["input"], w = b.parameter("w", {}, {nn::Init::ones});
  Value left = b("dropout", nn::Dropout(0.5), broadcast(x.graph().full(DType::f32, 0.5), {batch.size(), 64}));
  return {sum(left) * w, sum(batch.weights(DType::f32))};
}

struct AccumulationTest : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());
};

/// Losses, then what two epochs made of the model.
std::vector<double> trained(const Device& device, const Task& task, TrainerOptions o, int64_t accumulate) {
  o.accumulate = accumulate;
  Trainer t(device, task, o);
  for (int epoch = 0; epoch < 2; ++epoch) t.train(samples());
  EXPECT_EQ(t.planned_bytes(), t.peak_bytes());
  std::vector<double> out(t.losses().begin(), t.losses().end());
  for (const nn::Parameter& p : t.model_states()) {
    HostTensor x = t.state(p.name);
    for (size_t i = 0; i < x.bytes.size() / size_of(x.type.dtype); ++i) out.push_back(x.item(i));
  }
  return out;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  EXPECT_LE(worst, tolerance);
}

TEST_P(AccumulationTest, EqualsTheWholeBatch) {
  TrainerOptions o{
      .optimizer = Sgd{.lr = 0.05, .momentum = 0.9}, .clip_norm = 0.5, .ema = 0.9, .batch = 24, .keep_last = true};
  // a Linear by itself has a parameter "weight", as the run has a sum
  for (const Task& task : {classification(mlp()), classification(nn::Linear(4)), Task(masked, "masked")}) {
    std::vector<double> whole = trained(device, task, o, 1);
    for (int64_t parts : {3, 24}) expect_near(trained(device, task, o, parts), whole, 2e-6);
  }
}

TEST(Accumulation, EqualsTheWholeBatchInFloat64) {
  TrainerOptions o{.optimizer = AdamW{.lr = 1e-2}, .clip_value = 0.01, .batch = 24, .precision = Precision::f64};
  Device device = select_device("reference:0");
  for (const Task& task : {classification(mlp()), Task(masked, "masked")})
    expect_near(trained(device, task, o, 3), trained(device, task, o, 1), 1e-7);  // losses are read as f32
}

TEST_P(AccumulationTest, PartsDrawDifferentNumbers) {
  Trainer t(device, Task(dropped, "dropped"), {.optimizer = Sgd{.lr = 0}, .batch = 4, .accumulate = 4});
  t.train(samples());
  auto odd = [](float loss) { return std::lround(4 * loss) % 4 != 0; };  // equal parts add up to a multiple of 4
  EXPECT_TRUE(std::any_of(t.losses().begin(), t.losses().end(), odd));
  EXPECT_FALSE(std::all_of(t.losses().begin(), t.losses().end(), [&](float l) { return l == t.losses()[0]; }));
}

TEST_P(AccumulationTest, ASkippedStepLeavesNothing) {
  TrainerOptions o{.optimizer = Sgd{.lr = 0.05},
                   .batch = 24,
                   .accumulate = 3,
                   .precision = Precision::f16,
                   .loss_scaling = {.initial = 0x1p40}};
  Trainer t(device, classification(mlp()), o);
  for (int epoch = 0; epoch < 20; ++epoch) t.train(samples());
  EXPECT_GT(t.skipped_steps(), 10);
  EXPECT_LT(t.skipped_steps(), 30);
  EXPECT_LT(t.losses().back(), t.losses().front());
}

TEST_P(AccumulationTest, ResumedIsUnbroken) {
  Folder folder;
  TrainerOptions o{.optimizer = Adam{}, .batch = 12, .accumulate = 3};
  Trainer a(device, classification(mlp()), o), b(device, classification(mlp()), o), c(device, classification(mlp()), o);
  a.train(samples());
  b.train(samples(), 3);
  b.save(folder / "b.safetensors");
  c.load(folder / "b.safetensors");
  c.train(samples());
  EXPECT_EQ(a.state_hash(), c.state_hash());
}

TEST_P(AccumulationTest, TakesTheActivationsOfOnePart) {
  data::Split many = data::synthetic({64}, 4, 512, 8);
  Task task = classification(nn::Sequential{nn::Linear(128), nn::Gelu(), nn::Linear(128), nn::Gelu(), nn::Linear(4)});
  TrainerOptions o{.batch = 512, .eval_batch = 8};
  auto plan = [&](int64_t batch, int64_t parts) {
    o.accumulate = parts;
    return RunPlanner(device, task, o, many.train, &many.test).plan(batch);
  };
  MemoryPlan whole = plan(512, 1), part = plan(64, 1), parts = plan(512, 8);
  EXPECT_EQ(parts.activations, part.activations);
  EXPECT_LT(parts.peak, whole.peak);
  EXPECT_EQ(parts.accumulated / 4, parts.parameters / 4 + 2);  // the loss and its weight
  Trainer t(device, task, o);
  t.train(many.train);
  t.evaluate(many.test);
  EXPECT_EQ(parts.peak, t.peak_bytes());
  EXPECT_EQ(parts.peak, t.planned_bytes());
}

/// The part of a step of three layers of 256 by 256, so that every weight's gradient is large.
struct ThreeLayers {
  data::Split data = data::synthetic({256}, 256, 32, 8);
  Programs programs{classification(nn::Sequential{nn::Linear(256), nn::Relu(), nn::Linear(256), nn::Linear(256)})};
  InputLayout form = layout_of(data.train, "train", false);
  ModelSignature declared = programs.declare(form);
  Graph part = programs.accumulation(form, 16);
  std::vector<std::string> sums() const {
    std::vector<std::string> names;
    for (const nn::Parameter& p : declared.parameters)
      if (p.type.shape.size() == 2) names.push_back("accumulated." + p.name);
    return names;
  }
};

TEST(Accumulation, LargeGradientsAreAddedWhileTheBackwardPassGoesOn) {
  ThreeLayers three;
  const Graph g = group(three.part).graph;
  size_t last_product = 0;
  std::map<ValueId, size_t> producer;
  for (size_t k = 0; k < g.nodes().size(); ++k) {
    for (ValueId v : g.nodes()[k].results) producer[v] = k;
    if (g.nodes()[k].op == &matmul_op) last_product = k;
  }
  const std::vector<std::string> sums = three.sums();
  ASSERT_EQ(sums.size(), 3u);
  std::vector<size_t> added;
  for (const std::string& name : sums)
    for (const State& s : g.states())
      if (s.name == name) added.push_back(producer.at(s.after));
  EXPECT_LT(added[2], added[1]);
  EXPECT_LT(added[1], last_product);
  EXPECT_LT(last_product, added[0]);
}

TEST(Accumulation, ADeviceReportsStatesWithTheirFinalValues) {
  ThreeLayers three;
  Runner runner(select_device("onednn:0"));
  std::unique_ptr<CompiledGraph> first = runner.compile(three.programs.initialization(three.declared)),
                                 part = runner.compile(three.part);
  first->prepare();
  part->prepare();
  runner.write("seed", std::array<uint32_t, 2>{1, 0}.data(), 8);
  first->run([](const std::string&, void*) {});
  const std::vector<std::string> sums = three.sums();
  std::vector<size_t> order;
  std::vector<std::vector<std::byte>> seen(sums.size());
  const size_t bytes = size_t{256} * 256 * 4;
  ASSERT_TRUE(part->watch(sums, [&](size_t state, const std::byte* data) {
    order.push_back(state);
    seen[state].assign(data, data + bytes);
  }));
  std::vector<int32_t> samples(16);
  std::iota(samples.begin(), samples.end(), 0);
  auto fill = [&](const std::string& feed, void* to) {
    if (feed == "draw")
      std::memset(to, 0, sizeof(int32_t));
    else
      three.data.train.read(feed, samples, to);
  };
  for (int run = 1; run <= 2; ++run) {
    runner.wait(part->run(fill));
    EXPECT_EQ(order, (std::vector<size_t>{2, 1, 0}));
    for (size_t k = 0; k < sums.size(); ++k) EXPECT_EQ(runner.read(sums[k]).bytes, seen[k]) << sums[k];
    order.clear();
  }
  ASSERT_TRUE(part->watch(sums, [](size_t, const std::byte*) { throw invalid("not now"); }));
  expect_parts(message_of([&] { part->run(fill); }), {"not now"});
  ASSERT_TRUE(part->watch({}, nullptr));
  runner.wait(part->run(fill));
  EXPECT_FALSE(Runner(select_device("reference:0")).compile(three.part)->watch(sums, nullptr));
}

TEST(Accumulation, PartsMustBeEqual) {
  auto open = [](int64_t batch, int64_t parts) {
    return message_of(
        [&] { Trainer(select_device("reference:0"), classification(mlp()), {.batch = batch, .accumulate = parts}); });
  };
  expect_parts(open(24, 5), {"accumulate 5", "batch of 24", "batch 20"});
  expect_parts(open(4, 8), {"accumulate 8", "accumulate 4 or less"});
  expect_parts(open(24, 0), {"accumulate 0", "1 or more"});
}

INSTANTIATE_TEST_SUITE_P(Devices, AccumulationTest, testing::ValuesIn(usable()), test_name);

}  // namespace
}  // namespace tutti
