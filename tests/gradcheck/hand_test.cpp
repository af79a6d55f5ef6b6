// Gradients and values at points that random samples do not reach: ties, zeros, ends of ranges, bad input.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/ops.h"
#include "tests/gradcheck/check.h"

namespace tutti::test {
namespace {

Tensor tensor(Shape shape, std::vector<double> at, DType t = DType::f64) {
  Tensor x({t, std::move(shape)});
  x.at = std::move(at);
  return x;
}

std::vector<double> value(const OpDef& op, const std::vector<Tensor>& in, const Attrs& a = {}) {
  return evaluate(op, in, a.over(op.attrs))[0].at;
}

/// The gradient with all cotangents 1.
std::vector<double> slope(const OpDef& op, const Tensor& x, const Attrs& a = {}) {
  Case c = make_case(op, {x}, a, 0, op.name);
  for (Tensor& d : c.cotangents) std::fill(d.at.begin(), d.at.end(), 1);
  return rule_gradient(c, op, {true}, {true})[0];
}

TEST(Hand, ProdGradientWithZeros) {
  Tensor x = tensor({3, 3}, {0, 2, 3, 0, 0, 3, 1, 2, 3});
  Attrs rows{{"axes", Ints{1}}};
  EXPECT_EQ(slope(prod_op, x, rows), (std::vector<double>{6, 0, 0, 0, 0, 0, 6, 3, 2}));
  Case c = make_case(prod_op, {x}, rows, 0, "prod with zeros");
  std::string why;
  auto error = second_order_error(c, why);
  ASSERT_TRUE(error) << why;
  EXPECT_FALSE(!(*error <= 1e-5)) << *error;
}

TEST(Hand, TiesShareTheGradient) {
  Tensor x = tensor({2, 3}, {1, 5, 5, 2, 2, 2});
  Attrs rows{{"axes", Ints{1}}};
  EXPECT_EQ(slope(max_op, x, rows), (std::vector<double>{0, 0.5, 0.5, 1. / 3, 1. / 3, 1. / 3}));
  EXPECT_EQ(slope(min_op, x, rows), (std::vector<double>{1, 0, 0, 1. / 3, 1. / 3, 1. / 3}));
}

TEST(Hand, PointsOfKinks) {
  Tensor x = tensor({3}, {-1, 0, 1});
  EXPECT_EQ(slope(relu_op, x), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(slope(leaky_relu_op, x), (std::vector<double>{0.01, 0.01, 1}));
  EXPECT_EQ(slope(clamp_op, x, {{"low", Reals{0}}, {"high", Reals{0.5}}}), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(slope(hardtanh_op, x), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(slope(abs_op, x), (std::vector<double>{-1, 0, 1}));
}

TEST(Hand, MeanOfNarrowFloats) {  // 1037 is no bf16 number, and the sum of these is no f16 number
  std::vector<double> d = slope(mean_op, tensor({1037}, std::vector<double>(1037), DType::bf16));
  EXPECT_EQ(d[0], round_to(DType::bf16, 1. / 1037));
  OpDef decomposed = mean_op;
  decomposed.reference = nullptr;
  Tensor large = tensor({8}, std::vector<double>(8, 60000), DType::f16);
  EXPECT_EQ(value(mean_op, {large}), value(decomposed, {large}));
}

TEST(Hand, FarTailsAreFinite) {
  Tensor x = tensor({4}, {-1000, -50, 50, 1000});
  for (const OpDef* op : {&sigmoid_op, &silu_op, &softplus_op, &elu_op, &tanh_op})
    for (const auto& list : {value(*op, {x}), slope(*op, x)})
      for (double v : list) EXPECT_TRUE(std::isfinite(v)) << op->name;
}

TEST(Hand, ArgmaxAndNaN) {
  double nan = std::nan("");
  Tensor x = tensor({3, 3}, {1, 7, 7, 4, nan, 9, -1, -2, -3});
  EXPECT_EQ(value(argmax_op, {x}, {{"axes", Ints{1}}}), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(value(argmax_op, {tensor({2, 2}, {0, 1, 5, 2})}), (std::vector<double>{2}));
  auto max = value(max_op, {x}, {{"axes", Ints{1}}});
  EXPECT_EQ(max[0], 7);
  EXPECT_TRUE(std::isnan(max[1]));
  EXPECT_EQ(max[2], -1);
}

TEST(Hand, IndexCopies) {
  Tensor x = tensor({6}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(value(slice_op, {x}, {{"starts", Ints{-5}}, {"stops", Ints{-1}}, {"strides", Ints{2}}}),
            (std::vector<double>{1, 3}));
  EXPECT_EQ(value(pad_op, {tensor({2}, {1, 2})},
                  {{"low", Ints{1}}, {"high", Ints{2}}, {"interior", Ints{1}}, {"value", Reals{9}}}),
            (std::vector<double>{9, 1, 9, 2, 9, 9}));
  EXPECT_EQ(value(transpose_op, {tensor({2, 3}, {0, 1, 2, 3, 4, 5})}, {{"perm", Ints{-1, 0}}}),
            (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(value(concat_op, {tensor({2, 1}, {0, 3}), tensor({2, 2}, {1, 2, 4, 5})}, {{"axis", Ints{1}}}), x.at);
  Tensor index = tensor({3}, {-4, 1, 99}, DType::i32);
  EXPECT_EQ(value(gather_op, {x, index}), (std::vector<double>{0, 1, 5}));
  EXPECT_EQ(
      value(scatter_add_op, {tensor({4}, {2, 0, 2, 9}, DType::i32), tensor({4}, {1, 2, 3, 4})}, {{"size", Ints{3}}}),
      (std::vector<double>{2, 0, 8}));
  EXPECT_EQ(value(iota_op, {}, {{"shape", Ints{2, 3}}, {"axis", Ints{1}}}), (std::vector<double>{0, 1, 2, 0, 1, 2}));
  // a 2x2 image, 2x2 kernel, padding 1: nine windows; the first tap of each
  auto y = value(window_op, {tensor({1, 1, 2, 2}, {1, 2, 3, 4})},
                 {{"kernel", Ints{2, 2}}, {"padding", Ints{1, 1}}, {"value", Reals{-1}}});
  EXPECT_EQ(std::vector<double>(y.begin(), y.begin() + 9), (std::vector<double>{-1, -1, -1, -1, 1, 2, -1, 3, 4}));
}

// Two steps with numbers worked out by hand from PyTorch's formulas.
TEST(Hand, OptimizerSteps) {
  Tensor p = tensor({1}, {1}), g = tensor({1}, {0.5}), zero = tensor({1}, {0}), lr = tensor({}, {0.1});
  EXPECT_DOUBLE_EQ(value(sgd_op, {p, g, lr}, {{"weight_decay", Reals{0.2}}})[0], 1 - 0.1 * 0.7);
  Attrs heavy{{"momentum", Reals{0.9}}, {"nesterov", Ints{1}}};
  auto one = evaluate(sgd_momentum_op, std::vector{p, g, zero, lr}, heavy.over(sgd_momentum_op.attrs));
  EXPECT_DOUBLE_EQ(one[1].at[0], 0.5);
  EXPECT_DOUBLE_EQ(one[0].at[0], 1 - 0.1 * (0.5 + 0.9 * 0.5));
  Tensor c1 = tensor({}, {0.1}), c2 = tensor({}, {0.001});
  EXPECT_NEAR(value(adam_op, {p, g, zero, zero, lr, c1, c2})[0], 1 - 0.1 * 0.5 / (0.5 + 1e-8), 1e-14);
  EXPECT_NEAR(value(adamw_op, {p, g, zero, zero, lr, c1, c2})[0], 0.999 - 0.1 * 0.5 / (0.5 + 1e-8), 1e-14);
}

TEST(Hand, BadInputSaysWhatIsWrong) {
  auto message = [](auto&& build) {
    Graph g;
    Value x = g.feed("x", {DType::f32, {2, 3}});
    try {
      build(g, x);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(message([](Graph&, Value x) { transpose(x, {0, 0}); }), "contain the same axis twice");
  expect(message([](Graph&, Value x) { transpose(x, {0}); }), "must contain each of the 2 axes");
  expect(message([](Graph&, Value x) { slice(x, {0}, {1}); }), "one value for each of the 2 axes");
  expect(message([](Graph&, Value x) { slice(x, {0, 0}, {1, 1}, {1, 0}); }), "all values must be >= 1");
  expect(message([](Graph&, Value x) { pad(x, {-1, 0}, {0, 0}); }), "all values must be >= 0");
  expect(message([](Graph&, Value x) { concat({x, reshape(x, {3, 2})}, 0); }), "only along axis 0");
  expect(message([](Graph&, Value x) { gather(x, x); }), "expected i32");
  expect(message([](Graph&, Value x) { window(x, {2, 2}); }), "[N, C, H, W]");
  expect(message([](Graph&, Value x) { window(reshape(x, {1, 1, 2, 3}), {3, 3}); }), "the padded input has only 2");
  expect(message([](Graph&, Value x) { max(slice(x, {0, 0}, {0, 3})); }), "no elements");
  expect(message([](Graph&, Value x) { mean(x, {2}); }), "axis 2 is outside");
  expect(message([](Graph&, Value x) { gelu(x, "erf"); }), "must be 'none' or 'tanh'");
  expect(message([](Graph&, Value x) { clamp(x, 2, 1); }), "low = 2");
  expect(message([](Graph& g, Value x) {
           dropout(x, g.feed("s", {DType::u32, {2}}), g.feed("t", {DType::i32, {}}), 1.5);
         }),
         "outside [0, 1]");
  expect(message([](Graph& g, Value x) { dropout(x, x, g.feed("t", {DType::i32, {}}), 0.5); }), "seed must be u32[2]");
}

}  // namespace
}  // namespace tutti::test
