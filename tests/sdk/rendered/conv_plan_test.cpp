// Convolutions and pools in plans: what a convolution takes along, and pools with one or two results that are read.
#include <gtest/gtest.h>

#include "sdk/rendered/cache.h"
#include "sdk/rendered/plan.h"
#include "tests/sdk/raw_program.h"

namespace tutti::sdk {
namespace {

using test::RawProgram;

RenderedPlan plan(const RawProgram& raw, const Traits& traits = {}) {
  RenderCache cache(traits);
  return plan_rendered(Program::parse(raw.raw()), traits, cache, nullptr);
}

const int64_t one_one[] = {1, 1}, two_two[] = {2, 2}, zeros[] = {0, 0}, one = 1;

/// y = max(conv2d(x [2, 3, 6, 5], w [6, 3, 3, 3]) + b, 0), b of the given shape.
struct Layer : RawProgram {
  explicit Layer(std::vector<int64_t> bias) {
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {2, 3, 6, 5}, "x"), w = value(TUTTI_STATE, TUTTI_F32, {6, 3, 3, 3}, "w");
    uint32_t b = value(TUTTI_STATE, TUTTI_F32, std::move(bias), "b"), p = value(TUTTI_TEMP, TUTTI_F32, {2, 6, 4, 3});
    uint32_t q = value(TUTTI_TEMP, TUTTI_F32, {2, 6, 4, 3}), y = value(TUTTI_TEMP, TUTTI_F32, {2, 6, 4, 3});
    node("conv2d", {x, w}, {p});
    attrs({{"stride", TUTTI_ATTR_I64, 2, one_one},
           {"padding", TUTTI_ATTR_I64, 2, zeros},
           {"dilation", TUTTI_ATTR_I64, 2, one_one},
           {"groups", TUTTI_ATTR_I64, 1, &one}});
    node("add", {p, b}, {q});
    binary(TUTTI_X_ADD);
    node("relu", {q}, {y});
    expr({{TUTTI_X_INPUT, TUTTI_F32, 0, 0, 0},
          {TUTTI_X_CONST, TUTTI_F32, 0, 0, 0},
          {TUTTI_X_MAX, TUTTI_F32, 0, 1, 0},
          {TUTTI_X_RESULT, TUTTI_F32, 2, 0, 0}});
    states = {{"w", w, w}, {"b", b, b}, {"y", TUTTI_NONE, y}};
  }
};

TEST(ConvPlan, AConvolutionTakesABiasPerFilterAndTheReluAlong) {
  RenderedPlan p = plan(Layer({6, 1, 1}));
  ASSERT_EQ(p.launches.size(), 1u);
  EXPECT_EQ(p.launches[0].name, "portable conv: conv2d + 2");
  EXPECT_EQ(p.launches[0].buffers.size(), 4u);
  EXPECT_EQ(p.memories[p.launches[0].buffers[3]].state, "y");
}

TEST(ConvPlan, ABiasPerColumnIsAPassOfItsOwn) {
  RenderedPlan p = plan(Layer({3}));
  ASSERT_EQ(p.launches.size(), 3u);
  EXPECT_EQ(p.launches[0].name, "portable conv: conv2d");
}

TEST(ConvPlan, OnlyResultsThatAreReadAreBuffersOfAPool) {
  for (bool index : {false, true}) {
    RawProgram raw;
    uint32_t x = raw.value(TUTTI_FEED, TUTTI_F32, {2, 3, 4, 4}, "x"),
             y = raw.value(TUTTI_TEMP, TUTTI_F32, {2, 3, 2, 2});
    uint32_t i = index ? raw.value(TUTTI_TEMP, TUTTI_I32, {2, 3, 2, 2}) : TUTTI_NONE;
    raw.node("max_pool2d", {x}, {y, i});
    raw.attrs({{"kernel", TUTTI_ATTR_I64, 2, two_two},
               {"stride", TUTTI_ATTR_I64, 2, two_two},
               {"padding", TUTTI_ATTR_I64, 2, zeros},
               {"dilation", TUTTI_ATTR_I64, 2, one_one}});
    raw.states = {{"y", TUTTI_NONE, y}};
    if (index) raw.states.push_back({"i", TUTTI_NONE, i});
    RenderedPlan p = plan(raw);
    ASSERT_EQ(p.launches.size(), 1u);
    const std::vector<uint32_t>& memories = p.launches[0].buffers;
    ASSERT_EQ(memories.size(), index ? 3u : 2u);
    EXPECT_EQ(p.memories[memories[1]].state, "y");
    if (index) {
      EXPECT_EQ(p.memories[memories[2]].state, "i");
    }
  }
}

TEST(ConvPlan, ScratchBeyondADevicesRangeDeclines) {
  Layer raw({6, 1, 1});
  Traits small;
  small.cpu_like = true;
  plan(raw, small);
  small.max_buffer_bytes = 2000;  // the tensors have at most 720 bytes, the packed weights 27 x 16 floats
  plan(raw, small);
  small.max_buffer_bytes = 1000;
  EXPECT_THROW(plan(raw, small), Error);
}

}  // namespace
}  // namespace tutti::sdk
