// Recomputed activations: the same run in less memory.
#include "graph/passes/recompute.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "graph/passes/cse.h"
#include "graph/verify.h"
#include "tests/support/models.h"
#include "tests/train/devices.h"
#include "tests/train/files.h"
#include "train/run/fit.h"
#include "train/step/programs.h"
#include "train/task/model.h"

namespace tutti {
namespace {

using namespace tutti::test;

/// A model at its tiny size and synthetic data for it.
struct Tiny {
  const ModelDef& model;
  ModelOptions options{.size = "tiny"};
  data::Sources data;

  explicit Tiny(const std::string& name)
      : model(find_model(name)),
        data(data::open_data(model.synthetic(options, 64), {.context = model.context ? model.context(options) : 0})) {}
  Task task() const { return model.task(options, *data.train); }
  TrainerOptions trainer(int64_t recompute, Precision precision = Precision::f32) const {
    return {.optimizer = Adam{.lr = 1e-3},
            .batch = model.size("tiny").batch,
            .recompute = recompute,
            .eval_batch = 4,
            .precision = precision};
  }
};

/// A transformer whose activations are most of its memory.
struct Wide {
  data::Sources data = data::open_data(find_model("gpt").synthetic({.size = "tiny"}, 256), {.context = 8});
  TrainerOptions options{.optimizer = Sgd{}, .batch = 64, .eval_batch = 4};
  Task task() const { return find_model("gpt").task({.size = "tiny"}, *data.train); }
};

class RecomputeModels : public testing::TestWithParam<std::string> {};

/// The same arithmetic on the same numbers, dropout's draws among them: in f64, not one bit differs.
TEST_P(RecomputeModels, TrainToTheSameBits) {
  Tiny tiny(GetParam());
  std::map<int64_t, std::string> hashes;
  const TrainerOptions plain = tiny.trainer(0);
  const Device reference = select_device("reference:0");
  const bool has_blocks =
      !RunPlanner(reference, tiny.task(), plain, *tiny.data.train, nullptr).blocks(plain.batch).empty();
  auto train = [&](int64_t blocks) {
    Trainer t(reference, tiny.task(), tiny.trainer(blocks, Precision::f64));
    t.train(*tiny.data.train, 3);
    hashes[blocks] = t.state_hash();
  };
  train(0);
  train(all_blocks);
  if (has_blocks)
    train(1);
  else
    EXPECT_THROW(train(1), Error);
  if (has_blocks) EXPECT_EQ(hashes[1], hashes[0]);
  EXPECT_EQ(hashes[all_blocks], hashes[0]);
}

INSTANTIATE_TEST_SUITE_P(All, RecomputeModels, testing::ValuesIn(model_names()), model_label);

struct RecomputeTest : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());
};

TEST_P(RecomputeTest, TakesLessMemoryForTheSameLosses) {
  Wide wide;
  std::vector<float> plain;
  uint64_t before = 0, activations = 0;
  for (int64_t blocks : {int64_t{0}, all_blocks}) {
    wide.options.recompute = blocks;
    MemoryPlan plan = RunPlanner(device, wide.task(), wide.options, *wide.data.train, nullptr).plan(64);
    Trainer t(device, wide.task(), wide.options);
    t.train(*wide.data.train, 4);
    EXPECT_EQ(plan.peak, t.peak_bytes());
    EXPECT_EQ(t.planned_bytes(), t.peak_bytes());
    if (blocks == 0) {
      plain = t.losses();
      before = plan.peak;
      activations = plan.activations;
      continue;
    }
    EXPECT_LT(plan.peak, before);
    EXPECT_LT(plan.activations, activations);
    ASSERT_EQ(t.losses().size(), plain.size());
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(t.losses()[i], plain[i], 1e-5);
  }
}

TEST_P(RecomputeTest, ABudgetIsKept) {
  Wide wide;
  auto fitted = [&](uint64_t budget) {
    return fit(device, wide.task(), wide.options, *wide.data.train, nullptr, budget);
  };
  Fit plain = fitted(uint64_t{1} << 40);
  EXPECT_EQ(plain.peak, plain.plain);
  EXPECT_TRUE(plain.blocks.empty());
  ASSERT_GT(plain.of, 1u);
  Fit less = fitted(plain.plain - 1);
  EXPECT_LT(less.peak, plain.plain);
  EXPECT_EQ(less.blocks.size(), 1u);
  EXPECT_EQ(plain.cost, 0);
  EXPECT_GT(less.cost, 0);
  EXPECT_LT(less.cost, 1.0 / 3) << "at most one forward pass more";
  wide.options.recompute = static_cast<int64_t>(less.blocks.size());
  Trainer t(device, wide.task(), wide.options);
  t.train(*wide.data.train, 1);
  EXPECT_EQ(t.peak_bytes(), less.peak);
  wide.options.recompute = 0;
  wide.options.accumulate = 1;
  expect_parts(message_of([&] { fitted(1000); }), {"1000 B", "batch of 64", "memory-budget", "smaller batch"});
}

/// More blocks may take more memory: the least peak may be at any number of them.
TEST_P(RecomputeTest, ABudgetThatAnyNumberOfBlocksKeepsIsKept) {
  const ModelDef& gpt = find_model("gpt");
  data::Sources data = data::open_data(gpt.synthetic({.size = "nano"}, 64), {.context = gpt.context({.size = "nano"})});
  Task task = gpt.task({.size = "nano"}, *data.train);
  TrainerOptions options{.optimizer = Adam{}, .batch = 16, .eval_batch = 4};
  auto peak = [&](int64_t blocks, int64_t parts) {
    TrainerOptions o = options;
    o.recompute = blocks;
    o.accumulate = parts;
    return RunPlanner(device, task, o, *data.train, nullptr).plan(16).peak;
  };
  auto fitted = [&](uint64_t budget) { return fit(device, task, options, *data.train, nullptr, budget); };
  const auto count = static_cast<int64_t>(fitted(uint64_t{1} << 40).of);
  ASSERT_GE(count, 3);
  std::vector<uint64_t> peaks;
  for (int64_t blocks = 0; blocks <= count; ++blocks) peaks.push_back(peak(blocks, 1));
  for (uint64_t budget : peaks) {
    auto first = std::ranges::find_if(peaks, [&](uint64_t p) { return p <= budget; });
    Fit f = fitted(budget);
    EXPECT_EQ(f.peak, *first);
    EXPECT_EQ(static_cast<std::ptrdiff_t>(f.blocks.size()), first - peaks.begin());
  }
  uint64_t least = *std::ranges::min_element(peaks);
  for (int64_t parts = 2; parts <= 16; parts *= 2)
    for (int64_t blocks = 0; blocks <= count; ++blocks) least = std::min(least, peak(blocks, parts));
  std::string message = message_of([&] { fitted(least - 1); });
  expect_parts(message, {fmt::format("needs {} B", least), fmt::format("into {} B", least - 1),
                         fmt::format("memory-budget {}B", least)});
}

TEST_P(RecomputeTest, ABudgetOfAModelWithoutBlocks) {
  Tiny mlp("mlp");
  TrainerOptions options{.optimizer = Sgd{}, .batch = 7, .eval_batch = 4};
  std::string message = message_of([&] { fit(device, mlp.task(), options, *mlp.data.train, nullptr, 1000); });
  expect_parts(message, {"does not fit into 1000 B: its smallest configuration, a batch of 7, needs", "memory-budget"});
  EXPECT_EQ(message.find("block"), std::string::npos) << message;
}

TEST_P(RecomputeTest, WaysToFitDoFit) {
  Wide wide;
  auto peak = [&](const std::string& way) {
    TrainerOptions o = wide.options;
    std::istringstream words(way);
    for (std::string option, value; words >> option >> value;)
      (option == "accumulate" ? o.accumulate : o.recompute) = value == "all" ? all_blocks : std::stoll(value);
    return RunPlanner(device, wide.task(), o, *wide.data.train, nullptr).plan(o.batch).peak;
  };
  uint64_t plain = peak(""), least = peak("accumulate 64 recompute all");
  size_t kinds = 0;
  for (uint64_t room : {plain - 1, (2 * plain + least) / 3, (plain + 2 * least) / 3, least}) {
    std::vector<std::string> ways = ways_to_fit(device, wide.task(), wide.options, *wide.data.train, nullptr, room);
    EXPECT_FALSE(ways.empty()) << room;
    for (const std::string& way : ways) {
      EXPECT_LE(peak(way), room) << way;
    }
    kinds = std::max(kinds, ways.size());
  }
  EXPECT_EQ(kinds, 2u) << "parts, or recompute";
  EXPECT_TRUE(ways_to_fit(device, wide.task(), wide.options, *wide.data.train, nullptr, 1000).empty());
  wide.options.batch = 63;  // no half, but a third
  std::vector<std::string> ways =
      ways_to_fit(device, wide.task(), wide.options, *wide.data.train, nullptr, peak("") - 1);
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways[0], "accumulate 3");
}

INSTANTIATE_TEST_SUITE_P(Devices, RecomputeTest, testing::ValuesIn(usable()), test_name);

TEST(Recompute, CopiesSurviveTheMergingOfEqualNodes) {
  Wide wide;
  Programs programs(wide.task());
  Graph g = programs.training(layout_of(*wide.data.train, "set", true), 4);
  std::vector<std::string> names = blocks(g);
  ASSERT_GE(names.size(), 2u);
  EXPECT_TRUE(names[0].ends_with(".0")) << names[0];
  Graph r = recompute(g, {names[0]});
  verify(r);
  auto copies = [](const Graph& x) {
    return std::count_if(x.nodes().begin(), x.nodes().end(), [](const Node& n) { return n.phase == Phase::recompute; });
  };
  EXPECT_GT(copies(r), 5);
  EXPECT_GT(copies(cse(r)), 5);
  for (const Node& n : r.nodes())
    if (n.phase == Phase::recompute) {
      EXPECT_TRUE(n.label.starts_with(names[0])) << n.label;
    }
  expect_parts(message_of([&] { recompute(g, {"head.7"}); }), {"'head.7'", names[0]});
}

}  // namespace
}  // namespace tutti
