// Launches that share one: which do, that what depends on each other keeps its order, and how long memory is kept.
#include <gtest/gtest.h>

#include <algorithm>

#include "sdk/rendered/cache.h"
#include "sdk/rendered/plan.h"
#include "tests/sdk/raw_program.h"
#include "tests/sdk/rendered/cpu.h"

namespace tutti::sdk {
namespace {

using test::RawProgram;

RenderedPlan plan(const RawProgram& raw) {
  Traits gpu;
  gpu.compute_units = 4;
  RenderCache cache(gpu);
  return plan_rendered(Program::parse(raw.raw()), gpu, cache, nullptr);
}

/// The sums of the columns of x x, f32[512, 32], and of z z, f32[400, 48]; between them, if `read`, the sum of the
/// former.
struct TwoSums : RawProgram {
  explicit TwoSums(bool read) {
    uint32_t a = sum_of_squares(512, 32, "x", "a");
    uint32_t all = value(TUTTI_TEMP, TUTTI_F32, {});
    if (read) {
      sum(a, all);
      states.push_back({"all", TUTTI_NONE, all});
    }
    sum_of_squares(400, 48, "z", "b");
  }

 private:
  void sum(uint32_t from, uint32_t to) {
    static const int64_t axis = 0, no = 0;
    node("sum", {from}, {to});
    attrs({{"axes", TUTTI_ATTR_I64, 1, &axis}, {"keep", TUTTI_ATTR_I64, 1, &no}});
  }
  uint32_t sum_of_squares(int64_t rows, int64_t columns, const char* feed, const char* state) {
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {rows, columns}, feed), y = value(TUTTI_TEMP, TUTTI_F32, {rows, columns});
    uint32_t result = value(TUTTI_TEMP, TUTTI_F32, {columns});
    node("mul", {x, x}, {y});
    binary(TUTTI_X_MUL);
    sum(y, result);
    states.push_back({state, TUTTI_NONE, result});
    return result;
  }
};

/// Whether the launch uses the memory of this state.
bool uses(const RenderedPlan& p, const PlannedLaunch& l, const std::string& state) {
  return std::ranges::any_of(l.buffers, [&](uint32_t m) { return p.memories[m].state == state; });
}

TEST(SharedLaunches, OfTwoProgramsWithColumns) {
  RenderedPlan p = plan(TwoSums(false));
  ASSERT_EQ(p.launches.size(), 2u) << "partial results of both, sums of both";
  EXPECT_TRUE(p.launches[1].name.ends_with("(row_program_columns) and 1 more")) << p.launches[1].name;
  ASSERT_EQ(p.launches[1].buffers.size(), 4u) << "a result and partial results of both";
  EXPECT_EQ(p.launches[1].groups[0], 32u / 8 + 48 / 8);
  EXPECT_TRUE(uses(p, p.launches[1], "a") && uses(p, p.launches[1], "b"));
  EXPECT_EQ(p.kernels.size(), 2u) << "the kernels of the single launches are not built";
  for (size_t k : {size_t{1}, size_t{3}}) {
    const uint32_t partial = p.launches[1].buffers[k];
    EXPECT_EQ(std::ranges::count(p.launches[0].buffers, partial), 1);
    EXPECT_GE(p.memories[partial].last, p.memories[partial].first);
  }
  EXPECT_NE(p.memories[p.launches[1].buffers[1]].offset, p.memories[p.launches[1].buffers[3]].offset);
}

TEST(SharedLaunches, NotOfWhatReadsAnothersResult) {
  RenderedPlan p = plan(TwoSums(true));
  auto first = [&](const std::string& state) {
    return std::ranges::find_if(p.launches, [&](const PlannedLaunch& l) { return uses(p, l, state); }) -
           p.launches.begin();
  };
  EXPECT_LT(first("a"), first("all"));
  EXPECT_LT(p.launches.size(), 5u) << "what is independent shares launches";
}

TEST(SharedLaunches, NotOnACpu) {
  Traits cpu = test::cpu_of_many_launches();
  RenderCache cache(cpu);
  TwoSums sums(false);
  RenderedPlan p = plan_rendered(Program::parse(sums.raw()), cpu, cache, nullptr);
  for (const PlannedLaunch& l : p.launches) EXPECT_EQ(l.name.find("more"), std::string::npos) << l.name;
}

/// Large launches stay apart: one for both would gain nothing, and keep the memory of both.
TEST(SharedLaunches, NotOfLargeOnes) {
  struct Sums : RawProgram {
    explicit Sums(int64_t rows) {
      for (const char* name : {"x", "z"}) {
        const int64_t columns = name[0] == 'x' ? 40 : 48;
        uint32_t x = value(TUTTI_FEED, TUTTI_F32, {rows, columns}, name), y = value(TUTTI_TEMP, TUTTI_F32, {rows});
        static const int64_t axis = 1, no = 0;
        node("sum", {x}, {y});
        attrs({{"axes", TUTTI_ATTR_I64, 1, &axis}, {"keep", TUTTI_ATTR_I64, 1, &no}});
        states.push_back({name[0] == 'x' ? "a" : "b", TUTTI_NONE, y});
      }
    }
  };
  EXPECT_EQ(plan(Sums(1 << 17)).launches.size(), 1u);
  EXPECT_EQ(plan(Sums(1 << 18)).launches.size(), 2u);
}

}  // namespace
}  // namespace tutti::sdk
