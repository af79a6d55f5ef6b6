// Normalisations and embeddings as compositions, against arithmetic of their own in float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "tests/support/error_of.h"

namespace tutti {
namespace {

using test::error_from;
using testing::ElementsAre;
using testing::HasSubstr;

class Norms : public testing::Test {
 protected:
  Graph g;
  std::map<std::string, Tensor> in;

  Value feed(const std::string& name, TensorType type, std::vector<double> at) {
    Tensor t(type);
    t.at = std::move(at);
    in.emplace(name, t);
    return g.feed(name, type);
  }
  Value floats(const std::string& name, const Shape& shape, double first = 0) {
    std::vector<double> at(static_cast<size_t>(num_elements(shape)));
    for (size_t i = 0; i < at.size(); ++i) at[i] = first + std::sin(static_cast<double>(i * i));
    return feed(name, {DType::f64, shape}, std::move(at));
  }
  Value ints(const std::string& name, const Shape& shape, std::vector<double> at) {
    return feed(name, {DType::i32, shape}, std::move(at));
  }
  std::vector<double> values(Value v) { return evaluate(g, in, {v})[0].at; }
  void expect_equal(Value got, const std::vector<double>& want) {
    std::vector<double> have = values(got);
    ASSERT_EQ(have.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], 1e-9) << "element " << i;
  }
};

TEST_F(Norms, EvaluationTakesKnownStatistics) {
  Value x = floats("x", {2, 3, 2}), mean = floats("mean", {3}, 1), variance = floats("variance", {3}, 2);
  Value weight = floats("weight", {3}, 3), bias = floats("bias", {3}, 4);
  std::vector<double> want;
  for (size_t i = 0; i < 12; ++i) {
    size_t c = i / 2 % 3;
    double normal = (in.at("x").at[i] - in.at("mean").at[c]) / std::sqrt(in.at("variance").at[c] + 0.5);
    want.push_back(normal * in.at("weight").at[c] + in.at("bias").at[c]);
  }
  expect_equal(batch_norm_eval(x, mean, variance, weight, bias, 0.5), want);
  expect_equal(batch_norm_eval(x, mean, variance, {}, {}, 0.5),
               values((x - reshape(mean, {3, 1})) / sqrt(reshape(variance, {3, 1}) + 0.5)));
  EXPECT_THAT(error_from([&] { batch_norm_eval(x, bias, floats("v", {2})); }).what(), HasSubstr("variance is [2]"));
}

TEST_F(Norms, TrainingAndEvaluationAgreeOnTheBatchsStatistics) {
  Value x = floats("x", {4, 3, 5}), weight = floats("weight", {3}, 3), bias = floats("bias", {3}, 4);
  Values y = batch_norm(x, weight, bias);
  expect_equal(batch_norm_eval(x, y[1], y[2], weight, bias), values(y[0]));
  expect_equal(batch_norm(x, {}, bias)[0], values(batch_norm(x)[0] + reshape(bias, {3, 1})));
}

TEST_F(Norms, AnInstanceIsAGroupOfOneChannel) {
  Value x = floats("x", {2, 3, 4}), weight = floats("weight", {3}, 3);
  expect_equal(instance_norm(x, weight), values(layer_norm(x, {4}) * reshape(weight, {3, 1})));
  EXPECT_THAT(error_from([&] { instance_norm(floats("y", {2, 3, 1})); }).what(), HasSubstr("at least two elements"));
}

TEST_F(Norms, ShapesThatDoNotFitAreNamed) {
  Value x = floats("x", {1, 4});
  EXPECT_THAT(error_from([&] { batch_norm(x); }).what(), HasSubstr("1 values per channel"));
  EXPECT_THAT(error_from([&] { layer_norm(x, {3}); }).what(), HasSubstr("does not end with normalized_shape [3]"));
  EXPECT_THAT(error_from([&] { layer_norm(x, {4}, floats("w", {1})); }).what(), HasSubstr("weight is f64[1]"));
  EXPECT_THAT(error_from([&] { group_norm(x, 3); }).what(), HasSubstr("in 3 groups"));
  EXPECT_THAT(error_from([&] { embedding(x, ints("i", {1}, {0}), 1); }).what(),
              HasSubstr("padding_idx [1] is out of range for 1 rows"));
}

TEST_F(Norms, OfBfloatsTheStatisticsAreFloats) {
  Value x = g.feed("x", {DType::bf16, {4, 3}}), weight = g.feed("w", {DType::f32, {3}});
  Values y = batch_norm(x, weight);
  EXPECT_EQ(y[0].dtype(), DType::bf16);
  EXPECT_EQ(y[1].dtype(), DType::f32);
  Values d = gradients(Values{y[0]}, Values{x}, {x, weight});
  EXPECT_EQ(d[0].dtype(), DType::bf16);
  EXPECT_EQ(d[1].dtype(), DType::f32);
}

TEST_F(Norms, GradientsOfInputsThatDependOnEachOtherAreCountedOnce) {
  Value x = floats("x", {2, 3}), scale = floats("scale", {2, 1}, 2);
  // Against the same arithmetic with the inputs apart.
  Value y = call(rms_norm_dx_op, {x, x * x, scale}, {{"normalized_shape", Ints{3}}});
  Value a = floats("a", {2, 3}), b = feed("b", {DType::f64, {2, 3}}, values(x * x));
  Value apart = call(rms_norm_dx_op, {a, b, scale}, {{"normalized_shape", Ints{3}}});
  Values d = gradients(sum(apart), {a, b});
  expect_equal(gradients(sum(y), {x})[0], values(d[0] + d[1] * x * 2));
  Value twice = call(rms_norm_dx_op, {x, x, scale}, {{"normalized_shape", Ints{3}}});
  Value c = floats("c", {2, 3});
  d = gradients(sum(call(rms_norm_dx_op, {a, c, scale}, {{"normalized_shape", Ints{3}}})), {a, c});
  expect_equal(gradients(sum(twice), {x})[0], values(d[0] + d[1]));
}

class Bags : public Norms {
 protected:
  Value weight = floats("weight", {5, 2});
  double row(int i, size_t k) { return in.at("weight").at[static_cast<size_t>(i) * 2 + k]; }

  /// The rows that count of each bag, reduced.
  std::vector<double> reduced(const std::vector<std::vector<int>>& bags, const std::string& mode, int padding = -1) {
    std::vector<double> y;
    for (const auto& bag : bags)
      for (size_t k = 0; k < 2; ++k) {
        double total = 0, n = 0;
        for (int i : bag) {
          if (i == padding) continue;
          total = mode == "max" ? (n == 0 ? row(i, k) : std::max(total, row(i, k))) : total + row(i, k);
          ++n;
        }
        y.push_back(mode == "mean" && n > 0 ? total / n : total);
      }
    return y;
  }
};

TEST_F(Bags, OfEqualSize) {
  Value index = ints("i", {2, 3}, {4, 0, 4, 3, 3, 3});
  for (const char* mode : {"sum", "mean", "max"}) {
    expect_equal(embedding_bag(weight, index, {.mode = mode}), reduced({{4, 0, 4}, {3, 3, 3}}, mode));
    expect_equal(embedding_bag(weight, index, {.mode = mode, .padding_idx = -2}),
                 reduced({{4, 0, 4}, {3, 3, 3}}, mode, 3));
  }
  EXPECT_THAT(error_from([&] { embedding_bag(weight, index, {.mode = "min"}); }).what(),
              HasSubstr("unknown mode 'min'"));
}

TEST_F(Bags, ByOffsets) {
  Value index = ints("i", {6}, {4, 0, 4, 2, 1, 2}), offsets = ints("o", {4}, {0, 2, 2, 5});
  for (const char* mode : {"sum", "mean", "max"}) {
    expect_equal(embedding_bag(weight, index, offsets, {.mode = mode}), reduced({{4, 0}, {}, {4, 2, 1}, {2}}, mode));
    expect_equal(embedding_bag(weight, index, offsets, {.mode = mode, .padding_idx = 2}),
                 reduced({{4, 0}, {}, {4, 2, 1}, {2}}, mode, 2));
  }
}

TEST_F(Bags, OfWeightedRowsAndTheirGradients) {
  Value index = ints("i", {2, 2}, {4, 0, 4, 3}), factors = feed("f", {DType::f64, {2, 2}}, {2, 3, 5, 7});
  Value y = embedding_bag(weight, index, {.mode = "sum", .per_sample_weights = factors, .padding_idx = 0});
  expect_equal(y, {2 * row(4, 0), 2 * row(4, 1), 5 * row(4, 0) + 7 * row(3, 0), 5 * row(4, 1) + 7 * row(3, 1)});
  Values d = gradients(sum(y), {weight, factors});
  expect_equal(d[0], {0, 0, 0, 0, 0, 0, 7, 7, 7, 7});
  expect_equal(d[1], {row(4, 0) + row(4, 1), 0, row(4, 0) + row(4, 1), row(3, 0) + row(3, 1)});
  EXPECT_THAT(error_from([&] { embedding_bag(weight, index, {.per_sample_weights = factors}); }).what(),
              HasSubstr("in mode 'mean'"));
}

}  // namespace
}  // namespace tutti
