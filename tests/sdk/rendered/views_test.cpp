// Nodes that are no launch of their own: slices and transposes as strides of passes, casts of states in one launch.
#include <gtest/gtest.h>

#include "sdk/rendered/cache.h"
#include "sdk/rendered/plan.h"
#include "tests/sdk/raw_program.h"
#include "tests/sdk/rendered/cpu.h"

namespace tutti::sdk {
namespace {

using test::RawProgram;

RenderedPlan plan(const RawProgram& raw, bool cpu_like) {
  const Traits traits = cpu_like ? test::cpu_of_many_launches() : Traits();
  RenderCache cache(traits);
  return plan_rendered(Program::parse(raw.raw()), traits, cache, nullptr);
}

/// y = z z, where z is the middle of x x, f32[4, 8, 12], as [4, 2, 8, 2]; a query of attention.
struct Heads : RawProgram {
  uint32_t z = 0;
  Heads() {
    static const int64_t starts[] = {0, 0, 4}, stops[] = {4, 8, 8}, shape[] = {4, 8, 2, 2}, perm[] = {0, 2, 1, 3};
    static const int64_t ones[] = {1, 1, 1};
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {4, 8, 12}, "x"), all = value(TUTTI_TEMP, TUTTI_F32, {4, 8, 12});
    uint32_t part = value(TUTTI_TEMP, TUTTI_F32, {4, 8, 4}), split = value(TUTTI_TEMP, TUTTI_F32, {4, 8, 2, 2});
    z = value(TUTTI_TEMP, TUTTI_F32, {4, 2, 8, 2});
    uint32_t y = value(TUTTI_TEMP, TUTTI_F32, {4, 2, 8, 2});
    node("mul", {x, x}, {all});
    binary(TUTTI_X_MUL);
    node("slice", {all}, {part});
    attrs({{"starts", TUTTI_ATTR_I64, 3, starts},
           {"stops", TUTTI_ATTR_I64, 3, stops},
           {"strides", TUTTI_ATTR_I64, 3, ones}});
    node("reshape", {part}, {split});
    attrs({{"shape", TUTTI_ATTR_I64, 4, shape}});
    node("transpose", {split}, {z});
    attrs({{"perm", TUTTI_ATTR_I64, 4, perm}});
    node("mul", {z, z}, {y});
    binary(TUTTI_X_MUL);
    states = {{"y", TUTTI_NONE, y}};
  }
};

TEST(Views, SlicesAndTransposesAreStridesOfThePassThatReadsThem) {
  Heads raw;
  RenderedPlan p = plan(raw, false);
  ASSERT_EQ(p.launches.size(), 2u);
  const std::string& text = p.kernels[p.launches[1].kernel].text;
  EXPECT_NE(text.find("4 + c0 * 96 + c1 * 2 + c2 * 12 + x"), std::string::npos) << text;
  EXPECT_NE(p.launches[1].buffers[0], p.launches[1].buffers[1]) << "not in place: it reads in another order";
  EXPECT_EQ(plan(raw, true).launches.size(), 4u) << "a CPU reads rows";
  raw.states.push_back({"z", TUTTI_NONE, raw.z});  // somebody wants the whole of it
  EXPECT_EQ(plan(raw, false).launches.size(), 4u);
}

TEST(Views, CastsOfStatesAreOneLaunch) {
  RawProgram raw;
  static const int64_t axis = 0, no = 0;
  static constexpr const char* names[] = {"a", "b", "c"};
  for (int64_t k = 0; k < 3; ++k) {
    uint32_t w = raw.value(TUTTI_STATE, TUTTI_F32, {3 + k, 5}, names[k]);
    uint32_t whole = raw.value(TUTTI_TEMP, TUTTI_I32, {3 + k, 5}), most = raw.value(TUTTI_TEMP, TUTTI_I32, {5});
    raw.node("cast", {w}, {whole});
    raw.expr({{TUTTI_X_INPUT, TUTTI_F32, 0, 0, 0},
              {TUTTI_X_CAST, TUTTI_I32, 0, 0, 0},
              {TUTTI_X_RESULT, TUTTI_I32, 1, 0, 0}});
    raw.node("max", {whole}, {most});
    raw.attrs({{"axes", TUTTI_ATTR_I64, 1, &axis}, {"keep", TUTTI_ATTR_I64, 1, &no}});
    raw.states.push_back({names[k], w, w});
    raw.states.push_back({k == 0 ? "x" : k == 1 ? "y" : "z", TUTTI_NONE, most});
  }
  EXPECT_EQ(plan(raw, false).launches.size(), 2u) << "the casts together, and the reductions";
  EXPECT_EQ(plan(raw, true).launches.size(), 6u);
}

}  // namespace
}  // namespace tutti::sdk
