// The times of a step's kernels on every device: what they are of, and that taking them changes nothing else.
#include "train/run/profile.h"

#include <gtest/gtest.h>

#include <set>

#include "data/dataset.h"
#include "graph/autodiff/autodiff.h"
#include "graph/functions.h"
#include "graph/lower/compile.h"
#include "graph/ops.h"
#include "tests/support/error_of.h"
#include "tests/train/devices.h"
#include "train/run/trainer.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace tutti::test;

struct ProfileTest : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());
};

/// y' = relu(x w + b), summed into a state.
Graph layer() {
  Graph g;
  Value x = g.feed("x", {DType::f32, {64, 256}}), w = g.state("w", {DType::f32, {256, 128}});
  Value y = relu(matmul(x, w) + g.state("b", {DType::f32, {128}}));
  g.set_state("total", sum(y));
  g.set_state("y", y);
  return g;
}

/// Nodes and names, without the device's own copies.
std::vector<std::pair<uint32_t, std::string>> kernels(const std::vector<KernelTime>& times) {
  std::vector<std::pair<uint32_t, std::string>> all;
  for (const KernelTime& k : times)
    if (k.node != TUTTI_NONE) all.emplace_back(k.node, k.kernel);
  return all;
}

TEST_P(ProfileTest, KernelsAreInOrderAndCoverTheProgram) {
  Session session(device);
  ASSERT_TRUE(session.profiles());
  Legalizer legalizer(session);
  Lowered lowered = compile_for_device(layer(), legalizer);
  Executable plain = session.compile(lowered.program());
  EXPECT_EQ(error_from([&] { plain.times(); }).code, Code::invalid) << "it was not asked to profile";
  Executable timed = session.compile(lowered.program(), 0, true);
  timed.prepare();
  const std::vector<std::pair<uint32_t, std::string>> announced = kernels(timed.times());  // before the first run
  std::vector<KernelTime> last;
  for (int run = 0; run < 3; ++run) {  // both staging slots
    for (void* feed : timed.stage()) std::fill_n(static_cast<float*>(feed), 64 * 256, 1.f);
    auto start = std::chrono::steady_clock::now();
    timed.run();
    last = timed.times();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_FALSE(last.empty());
    EXPECT_EQ(last[0].start, 0u);
    double sum = 0;
    std::set<uint32_t> nodes;
    for (size_t k = 0; k < last.size(); ++k) {
      EXPECT_FALSE(last[k].kernel.empty());
      EXPECT_TRUE(last[k].node == TUTTI_NONE || last[k].node < lowered.program().nodes.count) << last[k].kernel;
      EXPECT_TRUE(k == 0 || last[k].start >= last[k - 1].start) << last[k].kernel;
      sum += 1e-9 * static_cast<double>(last[k].nanoseconds);
      nodes.insert(last[k].node);
    }
    EXPECT_GT(sum, 0);
    EXPECT_LT(sum, 1.05 * seconds) << "launches wait for each other";
    nodes.erase(TUTTI_NONE);
    EXPECT_GE(nodes.size(), 2u) << "a product and a sum";
  }
  EXPECT_EQ(kernels(last), announced);
  std::map<uint32_t, ProfiledWork> work = work_of(lowered.program(), last);
  double flops = 0;
  for (const auto& [node, w] : work) flops += w.cost.flops;
  EXPECT_EQ(flops, 2.0 * 64 * 256 * 128);
}

TEST_P(ProfileTest, AProfiledRunComesToTheSameBits) {
  static const data::Split split = data::synthetic({32}, 4, 96, 16);
  auto task = classification(nn::Sequential{nn::Flatten(), nn::Linear(16), nn::Relu(), nn::Linear(4)});
  auto trained = [&](std::shared_ptr<Profiler> profiler, int64_t accumulate) {
    Trainer t(device, task, {.batch = 16, .accumulate = accumulate, .profiler = std::move(profiler)});
    t.train(split.train);
    t.check_memory();
    return t.state_hash();
  };
  for (int64_t parts : {1, 2}) {
    auto profiler = std::make_shared<Profiler>();
    profiler->expect(3, 2);
    EXPECT_EQ(trained(nullptr, parts), trained(profiler, parts));
    ASSERT_EQ(profiler->steps().size(), 2u);
    int64_t number = 3;
    for (const ProfiledStep& s : profiler->steps()) {
      EXPECT_EQ(s.number, number++);
      ASSERT_EQ(s.runs.size(), parts == 1 ? 1u : 3u) << "the parts and the update";
      double at = s.begin;
      for (const ProfiledRun& r : s.runs) {
        EXPECT_GE(r.begin, at);
        EXPECT_GE(r.launched, r.begin);
        EXPECT_GE(r.kernels_begin(), r.launched);
        EXPECT_LT(r.kernel_seconds(), 1.05 * (r.end - r.launched));
        EXPECT_EQ(profiler->programs().at(r.program).device, device.id);
        at = r.end;
      }
      EXPECT_GE(s.end, at);
      EXPECT_LT(s.kernel_seconds() + s.host_seconds(), 1.05 * s.seconds());
    }
  }
}

TEST(Profile, StepsBeforeAndBehindAreLeftOut) {
  Profiler p;
  int idle = 0;
  for (int64_t step = 1; step <= 9; ++step) {
    if (step == 4) p.expect(2, 3);  // counted from here: the steps 5 to 7
    p.begin(step, [&] { ++idle; });
    EXPECT_EQ(p.active(), step >= 5 && step <= 7) << step;
    p.end();
  }
  EXPECT_EQ(idle, 3);
  ASSERT_EQ(p.steps().size(), 3u);
  EXPECT_EQ(p.steps()[0].number, 5);
}

/// The work of a kernel for each of these nodes.
std::map<uint32_t, ProfiledWork> work_with(const Lowered& lowered, const std::vector<uint32_t>& heads) {
  std::vector<KernelTime> kernels;
  for (uint32_t h : heads) kernels.push_back({h, 0, 1, "kernel", ""});
  return work_of(lowered.program(), kernels);
}

TEST(Profile, AttentionCountsTheProductsThatItDecomposesTo) {
  Graph g;
  Value q = g.feed("q", {DType::f32, {2, 4, 5, 8}}), k = g.feed("k", {DType::f32, {2, 2, 7, 8}});
  Value v = g.feed("v", {DType::f32, {2, 2, 7, 3}});
  Value y = attention(q, k, v);
  Values d = gradients(sum(y * y), {q, k, v});
  for (size_t i = 0; i < 3; ++i) g.set_state("d" + std::to_string(i), d[i]);
  Lowered lowered(g);
  const double pairs = 2 * 4 * 5 * 7;
  EXPECT_EQ(estimate_cost(lowered.program()).flops, 2 * pairs * (8 + 3) + 2 * pairs * (3 * 8 + 2 * 3));
}

/// Query i attends to keys 0 to i: counted one by one.
TEST(Profile, CausalAttentionCountsOnlyThePairsItComputes) {
  for (int64_t keys : {3, 5, 7}) {
    Graph g;
    Value q = g.feed("q", {DType::f32, {2, 4, 5, 8}}), k = g.feed("k", {DType::f32, {2, 2, keys, 8}});
    Value v = g.feed("v", {DType::f32, {2, 2, keys, 3}});
    Value y = attention(q, k, v, {.causal = true});
    Values d = gradients(sum(y * y), {q, k, v});
    for (size_t i = 0; i < 3; ++i) g.set_state("d" + std::to_string(i), d[i]);
    Lowered lowered(g);
    double pairs = 0;
    for (int64_t query = 0; query < 5; ++query)
      for (int64_t key = 0; key < keys; ++key) pairs += key <= query ? 2 * 4 : 0;
    EXPECT_EQ(estimate_cost(lowered.program()).flops, 2 * pairs * (8 + 3) + 2 * pairs * (3 * 8 + 2 * 3)) << keys;
  }
}

TEST(Profile, NodesWithoutAKernelBelongToTheOneThatTookThemAlong) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {8, 4}}), w = g.feed("w", {DType::f32, {4, 2}});
  Value b = g.feed("b", {DType::f32, {2}}), c = g.feed("c", {DType::f32, {8, 2}});
  Value y = matmul(x, w);         // 0
  Value z = relu(y + b);          // 1, 2
  Value dw = matmul(x, c, true);  // 3
  Value db = sum(c, {0});         // 4
  g.set_state("z", z);
  g.set_state("dw", dw);
  g.set_state("db", db);
  Lowered lowered(g);
  auto op = [&](uint32_t k) { return static_cast<const TuttiNode*>(lowered.program().nodes.at)[k].op; };
  ASSERT_STREQ(op(2), "relu");
  ASSERT_STREQ(op(4), "sum");
  auto work = work_with(lowered, {0, 3});
  EXPECT_EQ(work.at(0).nodes, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(work.at(3).nodes, (std::vector<uint32_t>{3, 4})) << "the sum of an operand";
  EXPECT_EQ(work.at(0).cost.flops, 2.0 * 8 * 4 * 2);
  EXPECT_EQ(work.at(0).cost.bytes, 4.0 * (8 * 4 + 4 * 2 + 2 + 8 * 2)) << "x, w, b and z, each once";
  work = work_with(lowered, {0, 1, 3, 4});
  EXPECT_EQ(work.at(1).nodes, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(work.at(0).cost.bytes, 4.0 * (8 * 4 + 4 * 2 + 8 * 2)) << "y has to be written now";
  work = work_of(lowered.program(), {{0, 0, 1, "a", ""}, {1, 0, 1, "b and 1 more", "", {4}}, {3, 0, 1, "c", ""}});
  EXPECT_EQ(work.at(1).nodes, (std::vector<uint32_t>{1, 2, 4})) << "the sum shares a launch";
  EXPECT_EQ(work.at(3).nodes, std::vector<uint32_t>{3});
  EXPECT_FALSE(work.contains(4));
}

INSTANTIATE_TEST_SUITE_P(Devices, ProfileTest, testing::ValuesIn(usable()), test_name);

}  // namespace
}  // namespace tutti
