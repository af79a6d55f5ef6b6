// Compositions with a gradient of their own: which gradient is taken, also twice and on devices, and what is refused.
// Ops made of functions of scalars.
#include "graph/autodiff/custom_vjp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/autodiff/autodiff.h"
#include "graph/functions.h"
#include "graph/functions/scalar_function.h"
#include "graph/ops.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/simplify.h"
#include "tests/support/device_run.h"
#include "tests/support/error_of.h"

namespace tutti {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor tensor(const std::vector<double>& at) {
  Tensor t({DType::f64, {static_cast<int64_t>(at.size())}});
  t.at = at;
  return t;
}

std::vector<double> values_of(Graph& g, const std::vector<double>& x, Value y) {
  return evaluate(g, {{"x", tensor(x)}}, {y})[0].at;
}

Value feed_of(Graph& g, int64_t n) { return g.feed("x", {DType::f64, {n}}); }

/// y = x^2 whose gradient is made 5 d y: no derivative of anything, so that it cannot be mistaken.
Value marked(Value x) {
  return custom_vjp(
      "marked", {x},
      [](const Values& in) {
        Value y = in[0] * in[0];
        return Forwarded{{y}, {y}};
      },
      [](const Values& kept, const Values& d) { return Values{5 * d[0] * kept[0]}; })[0];
}

TEST(CustomVjp, ItsGradientReplacesThatOfTheOps) {
  Graph g;
  Value x = feed_of(g, 2);
  Value y = marked(2 * x);
  EXPECT_THAT(values_of(g, {1, 3}, y), ElementsAre(4, 36));
  EXPECT_THAT(values_of(g, {1, 3}, gradients(sum(y), {x})[0]), ElementsAre(2 * 5 * 4, 2 * 5 * 36));
}

TEST(CustomVjp, SecondDerivativesAreThoseOfBackward) {
  Graph g;
  Value x = feed_of(g, 2);
  Value once = gradients(sum(marked(x)), {x})[0];  // 5 y, and y has the gradient 5 y again
  EXPECT_THAT(values_of(g, {1, 2}, gradients(sum(once), {x})[0]), ElementsAre(25, 25 * 4));
  Graph cube;  // backward by another residual: 3 d x^2
  Value z = feed_of(cube, 2);
  Value y = custom_vjp(
      "cube", {z},
      [](const Values& in) {
        return Forwarded{{in[0] * in[0] * in[0]}, {in[0]}};
      },
      [](const Values& kept, const Values& d) { return Values{3 * d[0] * kept[0] * kept[0]}; })[0];
  Value first = gradients(sum(y), {z})[0], second = gradients(sum(first), {z})[0];
  EXPECT_THAT(values_of(cube, {1, 2}, second), ElementsAre(6, 12));
  EXPECT_THAT(values_of(cube, {1, 2}, gradients(sum(second), {z})[0]), ElementsAre(6, 6));
}

TEST(CustomVjp, PassesGradientsWhereOpsHaveNone) {
  Graph g;
  Value x = feed_of(g, 2);
  auto straight = [](const Values&, const Values& d) { return Values{d[0]}; };
  Value rounded = custom_vjp(
      "straight", {x},
      [](const Values& in) {
        return Forwarded{{cast(cast(in[0], DType::i32), DType::f64)}, {}};
      },
      straight)[0];
  EXPECT_THAT(values_of(g, {1.75, -2.5}, rounded), ElementsAre(1, -2));
  EXPECT_THAT(values_of(g, {1.75, -2.5}, gradients(sum(rounded * rounded), {x})[0]), ElementsAre(2, -4));
  Value turned = custom_vjp(
      "turned", {x},
      [](const Values& in) {
        return Forwarded{{in[0]}, {}};
      },
      [](const Values&, const Values& d) { return Values{-d[0]}; })[0];
  EXPECT_THAT(values_of(g, {1, 2}, gradients(sum(turned * x), {x})[0]), ElementsAre(0, 0));
}

TEST(CustomVjp, SeveralInputsAndOutputs) {
  Graph g;
  Value x = feed_of(g, 2), scale = g.full(DType::f64, 2), index = g.full(DType::i32, 1);
  Values y = custom_vjp(
      "pair", {x, scale, index},
      [](const Values& in) {
        return Forwarded{{in[0] * in[1], sum(in[0])}, {in[0]}};
      },
      [](const Values& kept, const Values& d) {
        return Values{100 * d[0] + d[1], sum(d[0] * kept[0]), Value()};
      });
  Values first = gradients(sum(y[0]), {x, scale}), second = gradients(y[1] * 3, {x, scale});
  EXPECT_THAT(values_of(g, {1, 2}, first[0]), ElementsAre(100, 100));  // the other cotangent counts as zeros
  EXPECT_THAT(values_of(g, {1, 2}, first[1]), ElementsAre(3));
  EXPECT_THAT(values_of(g, {1, 2}, second[0]), ElementsAre(3, 3));
}

TEST(CustomVjp, Nested) {
  Graph g;
  Value x = feed_of(g, 2);
  Value y = custom_vjp(
      "outer", {x},
      [](const Values& in) {
        return Forwarded{{marked(in[0])}, {in[0]}};
      },
      [](const Values& kept, const Values& d) { return Values{d[0] * marked(kept[0])}; })[0];
  Value once = gradients(sum(y), {x})[0];
  EXPECT_THAT(values_of(g, {1, 3}, once), ElementsAre(1, 9));
  EXPECT_THAT(values_of(g, {1, 3}, gradients(sum(once), {x})[0]), ElementsAre(5, 45));
}

TEST(CustomVjp, RefusesWrongUse) {
  Graph g;
  Value x = feed_of(g, 2), w = g.state("w", {DType::f64, {2}}), whole = g.feed("n", {DType::i32, {2}});
  auto times = [&](const Values& in) { return Forwarded{{in[0] * w}, {}}; };
  auto gives = [](Values d) { return [d](const Values&, const Values&) { return d; }; };
  Value y = custom_vjp("scaled", {x}, times, [](const Values&, const Values& d) { return d; })[0];
  EXPECT_EQ(gradients(sum(y), {x}).size(), 1u);
  EXPECT_THAT(error_of([&] { gradients(sum(y), {w}); }),
              HasSubstr("custom_vjp 'scaled': its function uses a f64[2] that is not among its inputs"));
  EXPECT_THAT(error_of([&] { custom_vjp("f", {x}, times, gives({})); }), HasSubstr("0 gradients for 1 inputs"));
  EXPECT_THAT(error_of([&] { custom_vjp("f", {x}, times, gives({sum(x)})); }),
              HasSubstr("the gradient of input 0 is f64[], but the input is f64[2]"));
  EXPECT_THAT(error_of([&] {
                custom_vjp("f", {x, whole}, times, gives({x, whole}));
              }),
              HasSubstr("a gradient for input 1, which is i32[2]"));
  EXPECT_THAT(error_of([&] {
                custom_vjp(
                    "f", {x}, [](const Values&) { return Forwarded{}; }, gives({x}));
              }),
              HasSubstr("forward gives no output"));
  EXPECT_THAT(error_of([&] { custom_vjp("f", {}, times, gives({})); }), HasSubstr("an input is missing"));
}

/// y = x sigmoid(a x), as one node.
Value gated(Value x, Value a) {
  return elementwise("gated", {x, a}, [](const Values& v) { return Values{v[0] * sigmoid(v[1] * v[0])}; })[0];
}

TEST(Elementwise, AFunctionOfScalarsIsOneNode) {
  Graph g, ops;
  Value x = feed_of(g, 3), z = feed_of(ops, 3);
  Value y = gated(x, x), composed = z * sigmoid(z * z);
  EXPECT_EQ(values_of(g, {-30, 0.5, 30}, y), values_of(ops, {-30, 0.5, 30}, composed));
  EXPECT_EQ(values_of(g, {-30, 0.5, 30}, gradients(sum(y), {x})[0]),  // by sigmoid's rule, which does not overflow
            values_of(ops, {-30, 0.5, 30}, gradients(sum(composed), {z})[0]));
  g.set_state("y", y);
  Graph simple = simplify(g);
  auto live = live_nodes(simple);
  EXPECT_EQ(std::ranges::count(live, true), 1);
  EXPECT_EQ(gated(x, g.feed("column", {DType::f64, {2, 1}})).shape(), (Shape{2, 3}));
}

TEST(Elementwise, RefusesWhatIsNot) {
  Graph g;
  Value x = feed_of(g, 2);
  auto op = [&](auto f) { return error_of([&] { elementwise("mine", {x}, f); }); };
  EXPECT_THAT(op([](const Values& v) { return Values{sum(v[0])}; }),
              HasSubstr("op 'mine' uses sum, which is not elementwise"));
  EXPECT_THAT(op([](const Values& v) {
                return Values{v[0] * v[0].graph().constant(DType::f64, {1, 2})};
              }),
              HasSubstr("op 'mine' uses a f64[2] that is not among its inputs"));
  EXPECT_THAT(op([&](const Values&) { return Values{x}; }), HasSubstr("not computed from its inputs"));
  EXPECT_THAT(op([](const Values&) { return Values{}; }), HasSubstr("op 'mine' gives no value"));
  EXPECT_THAT(error_of([&] { gated(x, g.feed("a", {DType::f64, {3}})); }), HasSubstr("op 'gated': "));
}

TEST(CustomVjp, NoDeviceSeesIt) {
  for (const Device& device : test::devices_and_reference()) {
    Graph g;
    Value x = g.feed("x", {DType::f32, {2, 3}});
    Value y = marked(x);
    g.set_state("y", y);
    g.set_state("d", gradients(sum(y), {x})[0]);
    Graph simple = simplify(g);
    for (const Node& n : simple.nodes()) EXPECT_NE(n.op, &custom_vjp_op);
    Tensor in({DType::f32, {2, 3}});
    for (size_t i = 0; i < 6; ++i) in.at[i] = static_cast<double>(i) / 4;
    auto out = test::run_on(device, g, {{"x", in}});
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(out.at("y").at[i], in.at[i] * in.at[i], 1e-6) << device.id;
      EXPECT_NEAR(out.at("d").at[i], 5 * in.at[i] * in.at[i], 1e-5) << device.id;
    }
  }
}

}  // namespace
}  // namespace tutti
