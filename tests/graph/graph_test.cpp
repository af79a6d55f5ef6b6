// Building graphs, autodiff, and the errors that bad graphs get.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/ops.h"
#include "graph/verify.h"

namespace tutti {
namespace {

Tensor tensor(const Shape& shape, std::vector<double> at) {
  Tensor t({DType::f64, shape});
  t.at = std::move(at);
  return t;
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Graph, PositionsThatI32DoesNotHoldAreRefused) {
  constexpr int64_t most = 0x7fffffff;
  Graph g;
  auto bytes = [&](const std::string& name, int64_t n) { return g.feed(name, {DType::u8, {n, 2}}); };
  EXPECT_EQ(argmax(bytes("a", most), {0}).shape(), Shape{2});
  EXPECT_EQ(sort(bytes("b", most), 0)[1].shape(), (Shape{most, 2}));
  EXPECT_EQ(iota(g, {most}).shape(), Shape{most});
  for (const std::string& text :
       {message_of([&] { argmax(bytes("c", most + 1), {0}); }), message_of([&] { argmax(bytes("d", most)); }),
        message_of([&] { sort(bytes("e", most + 1), 0); }), message_of([&] {
          iota(g, {2, most + 1}, 1);
        })})
    EXPECT_NE(text.find("so the maximum is 2^31 - 1"), std::string::npos) << text;
}

TEST(Graph, NamesTheOpAndBothShapesWhenTheyDoNotFit) {
  Graph g;
  Value a = g.feed("a", {DType::f32, {2, 3}}), b = g.feed("b", {DType::f32, {4, 5}});
  std::string text = message_of([&] { matmul(a, b); });
  EXPECT_NE(text.find("matmul(f32[2, 3], f32[4, 5])"), std::string::npos) << text;
  text = message_of([&] { a + b; });
  EXPECT_NE(text.find("add(f32[2, 3], f32[4, 5])"), std::string::npos) << text;
  text = message_of([&] { call(sum_op, {a}, {{"axis", Ints{0}}}); });
  EXPECT_NE(text.find("unknown attribute 'axis'"), std::string::npos) << text;
  text = message_of([&] { a + cast(a, DType::f64); });
  EXPECT_NE(text.find("the same dtype"), std::string::npos) << text;
}

TEST(Graph, StatesKeepTheirTypeAndName) {
  Graph g;
  Value a = g.state("a", {DType::f32, {2}});
  EXPECT_EQ(a, g.state("a", {DType::f32, {2}}));
  EXPECT_NE(message_of([&] { g.state("a", {DType::f32, {3}}); }), "no error");
  EXPECT_NE(message_of([&] { g.feed("a", {DType::f32, {3}}); }), "no error");
  EXPECT_NE(message_of([&] { g.set_state("a", sum(a)); }), "no error");
  g.set_state("a", a + 1);
  EXPECT_EQ(g.latest("a").id(), g.states()[0].after);
}

TEST(Graph, ValuesOfAnotherGraphAreRefused) {
  Graph g, other;
  Value a = g.feed("a", {DType::f32, {2}}), b = other.feed("b", {DType::f32, {2}});
  EXPECT_NE(message_of([&] { a + b; }).find("not a value of this graph"), std::string::npos);
}

TEST(Autodiff, AddsTheContributionsOfAValueUsedManyTimes) {
  Graph g;
  Value x = g.feed("x", {DType::f64, {3}});
  Values d = gradients(sum(x * x * x + x), {x});
  Tensor got = evaluate(g, {{"x", tensor({3}, {1, 2, -3})}}, d)[0];
  for (size_t i = 0; i < 3; ++i) {
    double v = (double[]){1, 2, -3}[i];
    EXPECT_NEAR(got.at[i], 3 * v * v + 1, 1e-12);
  }
}

TEST(Autodiff, ComputesNothingForWhatNeedsNoGradient) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {4, 8}}), w = g.feed("w", {DType::f32, {8, 2}});
  Value loss = sum(matmul(x, w));
  gradients(loss, {w});
  int products = 0;
  for (const Node& n : g.nodes()) products += n.op == &matmul_op;
  EXPECT_EQ(products, 2) << "the forward product and dw; no dx";
}

TEST(Autodiff, UnreachedAndIntegerValuesGetNoGradient) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2}}), y = g.feed("y", {DType::f32, {2}}), i = g.feed("i", {DType::i32, {2}});
  Values d = gradients(sum(x * cast(i, DType::f32)), {x, y, i});
  EXPECT_TRUE(d[0]);
  EXPECT_FALSE(d[1]);
  EXPECT_FALSE(d[2]);
}

TEST(Autodiff, SecondDerivative) {
  Graph g;
  Value x = g.feed("x", {DType::f64, {2}});
  Value first = gradients(sum(tanh(x)), {x})[0];
  Value second = gradients(sum(first), {x})[0];
  Tensor got = evaluate(g, {{"x", tensor({2}, {0.3, -1.2})}}, {second})[0];
  for (size_t i = 0; i < 2; ++i) {
    double t = std::tanh((double[]){0.3, -1.2}[i]);
    EXPECT_NEAR(got.at[i], -2 * t * (1 - t * t), 1e-12);
  }
}

TEST(Autodiff, RefusesALossThatIsNoScalar) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2}});
  EXPECT_NE(message_of([&] { gradients(x * 2, {x}); }).find("not a scalar"), std::string::npos);
}

/// `find_op` searches the collected list, which is in the order of the names.
TEST(Ops, AreFoundByTheirNames) {
  ASSERT_GT(all_ops().size(), 100u);
  for (const OpDef* op : all_ops()) EXPECT_EQ(find_op(op->name), op) << op->name;
  EXPECT_EQ(find_op("no_such_op"), nullptr);
}

TEST(Eval, NamesAMissingInput) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2}});
  EXPECT_NE(message_of([&] { evaluate(g, {}, {x + 1}); }).find("'x'"), std::string::npos);
}

TEST(Eval, IntegersWrap) {
  Graph g;
  Value x = g.feed("x", {DType::i32, {1}});
  Tensor big({DType::i32, {1}});
  big.at = {2147483647};
  EXPECT_EQ(evaluate(g, {{"x", big}}, {x + x.like(1)})[0].at[0], -2147483648.0);
  EXPECT_EQ(evaluate(g, {{"x", big}}, {x * x})[0].at[0], 1.0);
}

}  // namespace
}  // namespace tutti
