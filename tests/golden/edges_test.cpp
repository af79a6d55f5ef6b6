// What PyTorch has no value for, or answers otherwise: labels out of range, NaN, windows over nothing but padding, and
// shapes that do not fit.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/ops.h"

namespace tutti {
namespace {

constexpr DType f64 = DType::f64;

Tensor tensor(TensorType type, std::vector<double> data) {
  Tensor t(std::move(type));
  t.at = std::move(data);
  return t;
}

TEST(CrossEntropy, labels_out_of_range_count_for_nothing) {
  Graph g;
  Value x = g.feed("x", {f64, {4, 3}}), l = g.feed("l", {DType::i32, {4}});
  Value x2 = g.feed("x2", {f64, {2, 3}}), l2 = g.feed("l2", {DType::i32, {2}});
  Value a = cross_entropy(x, l, {.label_smoothing = 0.1}), b = cross_entropy(x2, l2, {.label_smoothing = 0.1});
  std::vector<double> rows = {1, 2, -1, 0.5, 0, 3};
  std::map<std::string, Tensor> given = {{"x", tensor(x.type(), {1, 2, -1, 9, 9, 9, 0.5, 0, 3, 7, 8, 9})},
                                         {"l", tensor(l.type(), {1, 3, 0, -1})},
                                         {"x2", tensor(x2.type(), rows)},
                                         {"l2", tensor(l2.type(), {1, 0})}};
  Value da = gradients(a, {x})[0], db = gradients(b, {x2})[0];
  auto out = evaluate(g, given, {a, b, da, db});
  EXPECT_NEAR(out[0].at[0], out[1].at[0], 1e-14);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(out[2].at[i], out[3].at[i], 1e-14);
    EXPECT_EQ(out[2].at[3 + i], 0);
    EXPECT_NEAR(out[2].at[6 + i], out[3].at[3 + i], 1e-14);
    EXPECT_EQ(out[2].at[9 + i], 0);
  }
}

TEST(CrossEntropy, infinite_logits_of_other_classes_do_no_harm) {
  double inf = std::numeric_limits<double>::infinity();
  auto y = evaluate(cross_entropy_op,
                    std::vector<Tensor>{tensor({f64, {1, 3}}, {0, -inf, 0}), tensor({DType::i32, {1}}, {0})},
                    cross_entropy_op.attrs);
  EXPECT_NEAR(y[0].at[0], std::log(2), 1e-15);
}

TEST(MaxPool2d, the_first_of_equals_wins_and_nan_wins_over_all) {
  double nan = std::nan("");
  Tensor x = tensor({f64, {1, 1, 2, 6}}, {1, 4, nan, 7, -INFINITY, -INFINITY, 4, 4, 8, 9, -INFINITY, -INFINITY});
  auto y = evaluate(max_pool2d_op, std::vector<Tensor>{x}, max_pool2d_op.attrs);
  EXPECT_EQ(y[0].at[0], 4);
  EXPECT_EQ(y[1].at[0], 1);
  EXPECT_TRUE(std::isnan(y[0].at[1]));
  EXPECT_EQ(y[1].at[1], 0);
  EXPECT_EQ(y[0].at[2], -INFINITY);
  EXPECT_EQ(y[1].at[2], 0);
}

/// The message must hold every one of `parts`.
template <class F>
void expect_error(F f, const std::vector<std::string>& parts) {
  try {
    f();
    ADD_FAILURE() << "no error, expected: " << parts[0];
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::invalid) << e.what();
    for (const std::string& part : parts) EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Shapes, what_does_not_fit_is_named) {
  Graph g;
  int count = 0;
  auto f = [&](Shape shape, DType t = DType::f32) {
    return g.feed("x" + std::to_string(count++), {t, std::move(shape)});
  };
  Value x = f({2, 3, 8, 8}), w = f({4, 3, 3, 3});
  expect_error([&] { conv2d(x, f({4, 2, 3, 3})); }, {"conv2d", "[2, 3, 8, 8]", "[4, 2, 3, 3]", "3 channels"});
  expect_error([&] { conv2d(f({3, 8, 8}), w); }, {"[3, 8, 8]", "[4, 3, 3, 3]", "4 dimensions"});
  expect_error([&] { conv2d(x, w, {.groups = 2}); }, {"groups 2", "3 channels", "4 filters"});
  expect_error([&] { conv2d(x, w, {.groups = 0}); }, {"groups 0"});
  expect_error([&] { conv2d(x, w, {.stride = {0, 1}}); }, {"stride [0, 1]", "at least 1"});
  expect_error([&] { conv2d(x, w, {.stride = {1}}); }, {"stride", "two"});
  expect_error([&] { conv2d(x, w, {.padding = {-1, 0}}); }, {"padding [-1, 0]", "at least 0"});
  expect_error([&] { conv2d(x, w, {.padding = {0, int64_t{1} << 62}}); }, {"padding", "at most"});
  expect_error([&] { conv2d(x, w, {.dilation = {4, 1}}); }, {"dilation 4", "spans 9", "height"});
  expect_error([&] { conv2d(x, f({4, 3, 0, 3})); }, {"kernel size 0"});
  expect_error([&] { conv2d(x, f({4, 3, 3, 3}, f64)); }, {"f32[2, 3, 8, 8]", "f64[4, 3, 3, 3]", "dtype"});
  expect_error([&] { conv2d_dx(f({2, 4, 5, 5}), w, {2, 3, 8, 8}); }, {"[2, 4, 6, 6]", "[2, 4, 5, 5]"});
  expect_error([&] { conv2d_dx(f({2, 4, 6, 6}), w, {2, 3, -8, 8}); }, {"conv2d_dx", "-8"});
  expect_error([&] { conv2d_dw(x, f({2, 4, 5, 5}), {4, 3, 3, 3}); }, {"[2, 4, 6, 6]", "[2, 4, 5, 5]"});
  expect_error([&] { max_pool2d(f({2, 8, 8})); }, {"max_pool2d", "[2, 8, 8]", "4 dimensions"});
  expect_error([&] { max_pool2d(x, {.kernel = {9, 2}}); }, {"a kernel of size 9", "8"});
  expect_error([&] { avg_pool2d(x, {.padding = {2, 0}}); }, {"contain only padding"});
  expect_error(
      [&] {
        max_pool2d(f({1, 1, 4, 4}), {.kernel = {2, 2}, .padding = {1, 0}, .dilation = {5, 1}});
      },
      {"contain only padding"});
  expect_error([&] { global_avg_pool(f({2, 3})); }, {"global_avg_pool", "[2, 3]"});
  expect_error([&] { softmax(f({2, 3}), 2); }, {"softmax", "2"});
  expect_error([&] { softmax(f({2, 3}, DType::i32)); }, {"float"});
  expect_error([&] { cross_entropy(f({4, 10}), f({5}, DType::i32)); }, {"f32[4, 10]", "i32[4]", "i32[5]"});
  expect_error([&] { cross_entropy(f({4, 10}), f({4})); }, {"i32[4]", "f32[4]"});
  expect_error([&] { cross_entropy(f({4}), f({4}, DType::i32)); }, {"f32[4]"});
  expect_error(
      [&] {
        cross_entropy(f({4, 10}), f({4}, DType::i32), {.label_smoothing = 1.5});
      },
      {"label_smoothing", "1.5"});
  expect_error([&] { cross_entropy(f({4, 10}), f({4}, DType::i32), {.reduction = "avg"}); }, {"avg"});
  expect_error([&] { mse(f({4, 1}), f({4})); }, {"f32[4, 1]", "f32[4]"});
  expect_error([&] { huber(f({4}), f({4}), 0); }, {"delta is 0"});
  // Empty tensors whose other sizes, times the gates of a recurrence, would overflow.
  Value h = f({0, int64_t{1} << 62}), step = f({1, 0, 0}), matrix = f({0, 0});
  expect_error([&] { call_all(lstm_recurrence_op, {h, h, matrix, step}, {}); }, {"4 * H"});
  expect_error([&] { call_all(gru_recurrence_op, {h, matrix, f({0}), step}, {}); }, {"3 * H"});
  expect_error([&] { call_all(gru_recurrence_grad_op, {h, matrix, step, step, step}, {}); }, {"2^62"});
}

}  // namespace
}  // namespace tutti
