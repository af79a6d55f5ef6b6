// What a product's kernel computes along: elementwise nodes that also read other tensors, and the sum of an operand.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sdk/rendered/cpu.h"
#include "tests/sdk/rendered/plans.h"

namespace tutti::sdk {
namespace {

using test::plan;
using test::RawProgram;

std::vector<std::string> states_of(const RenderedPlan& p, const PlannedLaunch& l) {
  std::vector<std::string> names;
  for (uint32_t m : l.buffers)
    if (!p.memories[m].state.empty()) names.push_back(p.memories[m].state);
  return names;
}

/// The gradients of a linear layer behind a ReLU y: s = y <= 0 ? 0 : d w; dw = sᵀ v, db = the sum of s over its rows.
/// `gate`: whether something else reads y <= 0; `rows`: those of s.
struct Backward : RawProgram {
  explicit Backward(bool gate = false, uint32_t t = TUTTI_F32, int64_t rows = 16) {
    static const int64_t axis = 0, no = 0, yes = 1;
    const uint32_t d = value(TUTTI_FEED, t, {rows, 8}, "d"), w = value(TUTTI_STATE, t, {8, 32}, "w");
    const uint32_t y = value(TUTTI_FEED, t, {rows, 32}, "y"), v = value(TUTTI_FEED, t, {rows, 4}, "v");
    const uint32_t p = value(TUTTI_TEMP, t, {rows, 32}), closed = value(TUTTI_TEMP, TUTTI_BOOL, {rows, 32});
    const uint32_t s = value(TUTTI_TEMP, t, {rows, 32}), dw = value(TUTTI_TEMP, t, {32, 4});
    const uint32_t sum = value(TUTTI_TEMP, t, {32}), db = value(TUTTI_TEMP, TUTTI_F32, {32});
    const auto dtype = static_cast<uint16_t>(t);
    node("matmul", {d, w}, {p});
    attrs({{"ta", TUTTI_ATTR_I64, 1, &no}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    node("less_equal", {y}, {closed});
    expr({{TUTTI_X_INPUT, dtype, 0, 0, 0},
          {TUTTI_X_CONST, dtype, 0, 0, 0},
          {TUTTI_X_LESS_EQUAL, TUTTI_BOOL, 0, 1, 0},
          {TUTTI_X_RESULT, TUTTI_BOOL, 2, 0, 0}});
    node("select", {closed, p}, {s});
    expr({{TUTTI_X_INPUT, TUTTI_BOOL, 0, 0, 0},
          {TUTTI_X_INPUT, dtype, 1, 0, 0},
          {TUTTI_X_CONST, dtype, 0, 0, 0},
          {TUTTI_X_SELECT, dtype, 0, 2, 1},
          {TUTTI_X_RESULT, dtype, 3, 0, 0}});
    node("sum", {s}, {sum});
    attrs({{"axes", TUTTI_ATTR_I64, 1, &axis}, {"keep", TUTTI_ATTR_I64, 1, &no}});
    if (t != TUTTI_F32) {
      node("cast", {sum}, {db});
      expr({{TUTTI_X_INPUT, dtype, 0, 0, 0}, {TUTTI_X_CAST, TUTTI_F32, 0, 0, 0}, {TUTTI_X_RESULT, TUTTI_F32, 1, 0, 0}});
    }
    node("matmul", {s, v}, {dw});
    attrs({{"ta", TUTTI_ATTR_I64, 1, &yes}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    states = {{"w", w, w}, {"dw", TUTTI_NONE, dw}, {"db", TUTTI_NONE, t == TUTTI_F32 ? sum : db}};
    if (gate) states.push_back({"closed", TUTTI_NONE, closed});
  }
};

TEST(Activations, ReadOtherTensors) {
  for (uint32_t t : {TUTTI_F32, TUTTI_BF16}) {
    RenderedPlan p = plan(Backward(false, t));
    ASSERT_EQ(p.launches.size(), 2u);
    EXPECT_EQ(p.launches[0].buffers.size(), 4u) << "d, w, y, s";
    EXPECT_EQ(states_of(p, p.launches[1]), (std::vector<std::string>{"dw", "db"})) << "the sum, cast to f32, too";
  }
}

TEST(Activations, AreNoneWhereOthersReadWhatTheyWouldCompute) {
  RenderedPlan p = plan(Backward(true));
  EXPECT_EQ(p.launches[0].buffers.size(), 3u) << "d, w and their product";
  EXPECT_EQ(states_of(p, p.launches.back()), (std::vector<std::string>{"dw", "db"}));
}

TEST(Activations, AreNoneOnACpu) {
  RenderedPlan p = plan(Backward(), test::cpu_of_many_launches());
  EXPECT_EQ(p.launches[0].buffers.size(), 3u);
  EXPECT_GT(p.launches.size(), 3u);
}

TEST(Activations, NeedRoomForTheirOperands) {
  Traits few;
  few.max_arguments = 5;  // d, w, y, s, and partial sums
  EXPECT_EQ(plan(Backward(), few).launches.size(), 4u) << "the product, y <= 0, s, and dw with db";
}

TEST(OperandSums, OfPartsAreFinishedTogether) {
  Traits wide;
  wide.compute_units = 64;
  RenderedPlan p = plan(Backward(false, TUTTI_F32, 4096), wide);
  ASSERT_EQ(p.launches.size(), 3u) << "s, the parts of dw and db, their sums";
  EXPECT_EQ(states_of(p, p.launches[1]), std::vector<std::string>());
  EXPECT_EQ(states_of(p, p.launches[2]), (std::vector<std::string>{"dw", "db"}));
}

/// q = a w + b u, whose terms are products; then r = q c.
struct SumOfProducts : RawProgram {
  SumOfProducts() {
    static const int64_t no = 0;
    const uint32_t w = value(TUTTI_STATE, TUTTI_F32, {8, 32}, "w"), c = value(TUTTI_FEED, TUTTI_F32, {16, 32}, "c");
    uint32_t terms[2];
    for (uint32_t& term : terms) {
      const uint32_t a = value(TUTTI_FEED, TUTTI_F32, {16, 8}, &term == terms ? "a" : "b");
      term = value(TUTTI_TEMP, TUTTI_F32, {16, 32});
      node("matmul", {a, w}, {term});
      attrs({{"ta", TUTTI_ATTR_I64, 1, &no}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    }
    const uint32_t q = value(TUTTI_TEMP, TUTTI_F32, {16, 32}), r = value(TUTTI_TEMP, TUTTI_F32, {16, 32});
    node("add", {terms[0], terms[1]}, {q});
    binary(TUTTI_X_ADD);
    node("mul", {q, c}, {r});
    binary(TUTTI_X_MUL);
    states = {{"w", w, w}, {"r", TUTTI_NONE, r}};
  }
};

TEST(Activations, AreWholeChains) {
  RenderedPlan p = plan(SumOfProducts());
  ASSERT_EQ(p.launches.size(), 2u);
  EXPECT_EQ(p.launches[1].buffers.size(), 5u) << "b, w, the first product, c, r";
  EXPECT_EQ(states_of(p, p.launches[1]), (std::vector<std::string>{"w", "r"}));
}

}  // namespace
}  // namespace tutti::sdk
