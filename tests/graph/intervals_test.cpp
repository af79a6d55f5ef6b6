// What integers of a graph may hold, and which numbers its index columns allow.
#include "graph/intervals.h"

#include <gtest/gtest.h>

#include "graph/eval.h"
#include "graph/functions.h"
#include "graph/index_limit.h"
#include "graph/ops.h"

namespace tutti {
namespace {

class Intervals : public testing::Test {
 protected:
  Graph g;
  Value x = g.feed("x", {DType::i32, {4}}), y = g.feed("y", {DType::i32, {4}});
  std::optional<Interval> of(Value v, Interval a, Interval b = {0, 0}) {
    return intervals(g, {{x.id(), a}, {y.id(), b}})[v.id()];
  }
};

TEST_F(Intervals, OfArithmeticAsIfItHadNoWidth) {
  EXPECT_EQ(of(x * 1000003, {0, 123456}), (Interval{0, 123456.0 * 1000003}));
  EXPECT_EQ(of(x - y, {0, 10}, {-5, 7}), (Interval{-7, 15}));
  EXPECT_EQ(of(x * y, {-3, 2}, {-5, 7}), (Interval{-21, 15}));
  EXPECT_EQ(of(x / y, {-100, 7}, {-2, 3}), (Interval{-100, 100}));
  EXPECT_EQ(of(remainder(x, x.like(97)), {-1000, 1000}), (Interval{0, 96}));
  EXPECT_EQ(of(remainder(x, x.like(-97)), {-1000, 1000}), (Interval{-96, 0}));
  EXPECT_EQ(of(abs(x), {-4, 3}), (Interval{0, 4}));
  EXPECT_EQ(of(minimum(x, 5), {-4, 30}), (Interval{-4, 5}));
  EXPECT_EQ(of(sum(x), {-1, 3}), (Interval{-4, 12}));
  EXPECT_EQ(of(cumsum(x, 0), {1, 3}), (Interval{0, 12}));
  EXPECT_EQ(of(prod(x), {0, 3}), (Interval{0, 81}));
  EXPECT_EQ(of(argmax(x, {0}), {0, 0}), (Interval{0, 3}));
  EXPECT_EQ(of(cast(less(x, y), DType::i32), {0, 3}, {9, 9}), (Interval{1, 1}));
  EXPECT_EQ(of(logical_and(x, x.like(255)), {-1000, 1000}), (Interval{0, 255}));
}

TEST_F(Intervals, OfMovesAndChoices) {
  EXPECT_EQ(of(concat({x, y + 7}, 0), {1, 2}, {1, 2}), (Interval{1, 9}));
  EXPECT_EQ(of(reshape(x, {2, 2}), {1, 2}), (Interval{1, 2}));
  EXPECT_EQ(of(select(less(x, x.like(0)), x + 10, x), {0, 5}), (Interval{0, 5}));
  EXPECT_EQ(of(select(less(x, x.like(2)), x + 10, x), {0, 5}), (Interval{0, 15}));
  EXPECT_EQ(of(iota(g, {2, 9}, 1), {0, 0}), (Interval{0, 8}));
}

TEST_F(Intervals, NothingIsKnownOfWhatWasAFloat) {
  EXPECT_EQ(of(cast(cast(x, DType::f32) * 0.5, DType::i32) + 1, {0, 9}), std::nullopt);
}

/// The interval holds what the reference computes, for every elementwise op of integers and random inputs.
TEST_F(Intervals, HoldTheValues) {
  Values all = {x + y,
                x - y,
                x * y,
                x / y,
                remainder(x, y),
                fmod(x, y),
                div(x, y, "floor"),
                minimum(x, y),
                maximum(x, y),
                logical_and(x, y),
                logical_or(x, y),
                -x,
                abs(x),
                clamp(x, -3, 2)};
  for (int a = -6; a <= 6; ++a)
    for (int b = -6; b <= 6; ++b) {
      Tensor p({DType::i32, {4}}), q = p;
      p.at = {double(a), double(a + 1), double(a + 3), double(a + 4)},
      q.at = {double(b), double(b + 2), double(b), double(b + 5)};
      auto at = intervals(g, {{x.id(), {double(a), double(a + 4)}}, {y.id(), {double(b), double(b + 5)}}});
      std::vector<Tensor> got = evaluate(g, {{"x", p}, {"y", q}}, all);
      for (size_t k = 0; k < all.size(); ++k)
        for (double v : got[k].at) {
          ASSERT_TRUE(at[all[k].id()]) << k;
          EXPECT_TRUE(at[all[k].id()]->low <= v && v <= at[all[k].id()]->high)
              << k << ": " << v << " of " << a << ", " << b;
        }
    }
}

TEST(IndexLimit, IsThatOfTheOpThatPicks) {
  Graph g;
  Value token = g.feed("token", {DType::i32, {2, 3}}), label = g.feed("label", {DType::i32, {2}});
  Value free = g.feed("free", {DType::i32, {2}}), back = g.feed("back", {DType::i32, {2}});
  Value table = g.feed("table", {DType::f32, {5, 4}});
  EXPECT_EQ(index_limit(g, token), std::nullopt);
  embedding(table, reshape(token, {6}));
  cross_entropy(g.feed("logits", {DType::f32, {2, 3}}), label);
  gather(table, minimum(free, 4));  // computed: clamped, not limited
  gather(table, select(less(back, back.like(0)), back + 5, back));
  EXPECT_EQ(index_limit(g, token), (Limit{.low = 0, .end = 5}));
  EXPECT_EQ(index_limit(g, label), (Limit{.low = 0, .end = 3, .except = -100}));
  EXPECT_EQ(index_limit(g, free), std::nullopt);
  EXPECT_EQ(index_limit(g, back), (Limit{.low = -5, .end = 5}));
  gather(table, slice(token, {0, 0}, {2, 1}), 1);
  EXPECT_EQ(index_limit(g, token), (Limit{.low = 0, .end = 4}));
  take_along_axis(table, reshape(select(equal(free, free.like(-7)), free.like(0), free), {2, 1}), 1);
  EXPECT_EQ(index_limit(g, free), (Limit{.low = 0, .end = 4, .except = -7}));
}

}  // namespace
}  // namespace tutti
