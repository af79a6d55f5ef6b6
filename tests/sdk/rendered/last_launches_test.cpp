// The last launches of row programs with columns: they wait, and share a launch until something reads their results.
#include <gtest/gtest.h>

#include "sdk/rendered/cache.h"
#include "sdk/rendered/plan.h"
#include "tests/sdk/raw_program.h"

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

TEST(LastLaunches, ShareOne) {
  RenderedPlan p = plan(TwoSums(false));
  ASSERT_EQ(p.launches.size(), 3u);
  EXPECT_EQ(p.launches[2].name, "rows: columns of 2 programs");
  ASSERT_EQ(p.launches[2].buffers.size(), 4u) << "a result and partial results of both";
  EXPECT_EQ(p.launches[2].groups[0], 32u / 8 + 48 / 8);
  for (size_t k : {size_t{0}, size_t{1}}) {
    const PlannedMemory& partial = p.memories[p.launches[k].buffers.back()];
    EXPECT_EQ(p.launches[2].buffers[2 * k + 1], p.launches[k].buffers.back());
    EXPECT_GE(partial.last, 2u) << "kept until they are read";
  }
}

TEST(LastLaunches, RunBeforeTheirResultsAreRead) {
  RenderedPlan p = plan(TwoSums(true));
  ASSERT_EQ(p.launches.size(), 5u);
  uint32_t result = p.launches[1].buffers[0];
  EXPECT_NE(p.launches[1].name.find("row_program_columns"), std::string::npos) << p.launches[1].name;
  EXPECT_EQ(p.launches[2].buffers[0], result) << "the sum of all";
  EXPECT_NE(p.launches[4].name.find("row_program_columns"), std::string::npos) << p.launches[4].name;
}

}  // namespace
}  // namespace tutti::sdk
