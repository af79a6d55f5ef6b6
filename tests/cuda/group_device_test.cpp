// A group of one rank: what a machine with one GPU can tell of collectives. Skipped without a GPU, or without NCCL.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "core/runtime/registry.h"
#include "graph/ops.h"
#include "tests/support/require.h"
#include "train/run/runner.h"

namespace tutti {
namespace {

constexpr int64_t count = 1 << 18;

class CudaGroup : public testing::Test {
 protected:
  void SetUp() override {
    std::string why = "the cuda plugin is not loaded";
    for (const Device& d : Registry::instance().devices()) {
      if (d.plugin != "cuda") continue;
      why = d.unusable;
      if (why.empty()) device = d;
      break;
    }
    if (!why.empty()) return test::skip_without("cuda", "no device: " + why);
    runner.emplace(device);
    try {
      fmt::print("{}: {}\n", device.name, runner->session().group_library());
    } catch (const Error& e) {
      return test::skip_without("nccl", fmt::format("{}; {}", e.what(), e.remedy));
    }
  }

  /// Adds the feed to one state, and twice the feed to another, in that order.
  std::unique_ptr<CompiledGraph> program() {
    Graph g;
    const TensorType type{DType::f32, {count}};
    Value x = g.feed("x", type), a = g.state("a", type) + x;
    g.set_state("a", a);
    g.set_state("b", g.state("b", type) + x * g.full(DType::f32, 2));
    std::unique_ptr<CompiledGraph> step = runner->compile(g);
    step->prepare();
    return step;
  }

  uint64_t run(CompiledGraph& step, float x, bool sums) {
    auto fill = [&](const std::string&, void* to) { std::fill_n(static_cast<float*>(to), count, x); };
    return sums ? step.run_and_sum(fill) : step.run(fill);
  }

  void join() {
    Session& s = runner->session();
    s.join(s.unique_id(), 0, 1, [this](auto) { ++asked; });
  }

  std::vector<float> read(const std::string& state) {
    std::vector<float> out(count);
    runner->read(state, out.data(), count * sizeof(float));
    return out;
  }
  std::vector<float> all(float x) { return std::vector<float>(count, x); }

  Device device;
  std::optional<Runner> runner;
  int asked = 0;
};

TEST_F(CudaGroup, SumsDuringRunsAndBetweenThem) {
  auto step = program();
  join();
  ASSERT_TRUE(step->prepare_sums({{"b"}, {"a"}}));
  for (int k = 1; k <= 5; ++k) {
    run(*step, static_cast<float>(k), true);
    run(*step, 1, false);  // another slot: the recorded sums are of none
    runner->session().all_reduce({"a", "b"});
    runner->session().broadcast({"a"}, 0);
  }
  EXPECT_EQ(read("a"), all(20));
  EXPECT_EQ(read("b"), all(40));
}

TEST_F(CudaGroup, TheSameWithoutGraphs) {
  setenv("TUTTI_CUDA_GRAPH", "0", 1);
  runner.emplace(device);
  EXPECT_NE(runner->session().group_library().find("without CUDA graphs"), std::string::npos);
  auto step = program();
  unsetenv("TUTTI_CUDA_GRAPH");
  join();
  ASSERT_TRUE(step->prepare_sums({{"a"}, {"b"}}));
  for (int k = 0; k < 3; ++k) run(*step, 2, true);
  EXPECT_EQ(read("a"), all(6));
  EXPECT_EQ(read("b"), all(12));
}

TEST_F(CudaGroup, LeavesAndJoinsAgain) {
  auto step = program();
  for (int k = 0; k < 2; ++k) {
    join();
    ASSERT_TRUE(step->prepare_sums({{"a", "b"}}));
    run(*step, 1, true);
    runner->session().leave();
    run(*step, 1, false);
  }
  EXPECT_EQ(read("a"), all(4));
}

TEST_F(CudaGroup, WrongCallsAreErrors) {
  auto step = program();
  Session& s = runner->session();
  EXPECT_THROW(s.all_reduce({"a"}), Error) << "in no group";
  EXPECT_THROW(step->prepare_sums({{"a"}}), Error) << "in no group";
  join();
  EXPECT_THROW(join(), Error) << "twice";
  EXPECT_THROW(s.all_reduce({"none"}), Error);
  EXPECT_THROW(s.all_reduce({"a", "a"}), Error);
  EXPECT_THROW(s.broadcast({"a"}, 1), Error) << "there is no rank 1";
  EXPECT_THROW(step->prepare_sums({{"a"}, {"a"}}), Error);
  EXPECT_THROW(step->prepare_sums({{"none"}}), Error);
  EXPECT_NO_THROW(s.all_reduce({"a"}));
}

TEST_F(CudaGroup, AfterItWasGivenUpNothingRunsAndNothingWaits) {
  auto step = program();
  join();
  ASSERT_TRUE(step->prepare_sums({{"a"}}));
  run(*step, 1, true);
  runner->session().abandon();
  try {
    read("a");
    ADD_FAILURE() << "read a state";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::device_lost) << e.what();
  }
  EXPECT_THROW(run(*step, 1, true), Error);
}

}  // namespace
}  // namespace tutti
