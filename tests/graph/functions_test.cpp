// Compositions, evaluated in float64. The numbers of conv_transpose2d are PyTorch's (functions_golden.py).
#include "graph/functions.h"
#include "graph/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "tests/support/error_of.h"

namespace tutti {
namespace {

using test::error_from;
using testing::ElementsAre;
using testing::HasSubstr;

/// A feed of 0, 1, 2, …
Value counted(Graph& g, std::map<std::string, Tensor>& in, const std::string& name, const Shape& shape,
              double first = 0) {
  Tensor t({DType::f32, shape});
  for (double& x : t.at) x = first++;
  in.emplace(name, t);
  return g.feed(name, t.type);
}

class Functions : public testing::Test {
 protected:
  Graph g;
  std::map<std::string, Tensor> in;
  Value feed(const std::string& name, const Shape& shape, double first = 0) {
    return counted(g, in, name, shape, first);
  }
  std::vector<double> values(Value v) { return evaluate(g, in, {v})[0].at; }
};

TEST_F(Functions, ScalarsStandOnEitherSide) {
  Value x = feed("x", {3}, 1);
  EXPECT_THAT(values(pow(x, 2.0)), ElementsAre(1, 4, 9));
  EXPECT_THAT(values(pow(2.0, x)), ElementsAre(2, 4, 8));
  EXPECT_THAT(values(maximum(x, 2.0)), ElementsAre(2, 2, 3));
  EXPECT_THAT(values(minimum(x, 2.0)), ElementsAre(1, 2, 2));
}

TEST_F(Functions, ComparisonsGiveBool) {
  Value x = feed("x", {3}, 1), y = feed("y", {3}, 0);
  EXPECT_EQ((x < y).dtype(), DType::boolean);
  EXPECT_THAT(values(x < 2.0), ElementsAre(1, 0, 0));
  EXPECT_THAT(values(x <= 2.0), ElementsAre(1, 1, 0));
  EXPECT_THAT(values(x > 2.0), ElementsAre(0, 0, 1));
  EXPECT_THAT(values(x >= 2.0), ElementsAre(0, 1, 1));
  EXPECT_THAT(values(x > y), ElementsAre(1, 1, 1));
  EXPECT_THAT(values(x <= y), ElementsAre(0, 0, 0));
  in.at("x").at[0] = NAN;
  for (Value v : {x<2.0, x> 2.0, x <= x, x >= x}) EXPECT_EQ(values(v)[0], 0) << "NaN compares with nothing";
}

TEST_F(Functions, AxesComeAndGo) {
  Value x = feed("x", {1, 2, 1, 3});
  EXPECT_EQ(squeeze(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(x, {0}).shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(squeeze(x, {-2}).shape(), (Shape{1, 2, 3}));
  EXPECT_THAT(error_from([&] { squeeze(x, {1}); }).what(), HasSubstr("axis 1 of [1, 2, 1, 3] has size 2, not 1"));
  EXPECT_THAT(error_from([&] { squeeze(x, {4}); }).what(), HasSubstr("axis 4 is out of range for a tensor of rank 4"));
  EXPECT_EQ(unsqueeze(x, 0).shape(), (Shape{1, 1, 2, 1, 3}));
  EXPECT_EQ(unsqueeze(x, -1).shape(), (Shape{1, 2, 1, 3, 1}));
  EXPECT_EQ(error_from([&] { unsqueeze(x, 5); }).code, Code::invalid);
  EXPECT_EQ(flatten(x).shape(), Shape{6});
  EXPECT_EQ(flatten(x, 1).shape(), (Shape{1, 6}));
  EXPECT_EQ(flatten(x, 1, -2).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(flatten(x.like(1)).shape(), Shape{1});
  EXPECT_THAT(error_from([&] { flatten(x, 3, 1); }).what(), HasSubstr("comes after"));
}

TEST_F(Functions, TensorsAreStackedAndSplit) {
  Value a = feed("a", {2}), b = feed("b", {2}, 10);
  EXPECT_THAT(values(stack({a, b})), ElementsAre(0, 1, 10, 11));
  EXPECT_THAT(values(stack({a, b}, -1)), ElementsAre(0, 10, 1, 11));
  EXPECT_EQ(stack({a, b}, 1).shape(), (Shape{2, 2}));
  EXPECT_THAT(error_from([&] { stack({a, feed("c", {3})}); }).what(), HasSubstr("must have the same type"));
  EXPECT_EQ(error_from([&] { stack({}); }).code, Code::invalid);
  Value x = feed("x", {2, 5});
  Values parts = split(x, 2, 1);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(values(parts[1]), ElementsAre(2, 3, 7, 8));
  EXPECT_THAT(values(parts[2]), ElementsAre(4, 9));
  parts = split(x, Ints{1, 0, 4}, -1);
  EXPECT_THAT(values(parts[0]), ElementsAre(0, 5));
  EXPECT_EQ(parts[1].shape(), (Shape{2, 0}));
  EXPECT_THAT(error_from([&] {
                split(x, Ints{1, 3}, 1);
              }).what(),
              HasSubstr("part sizes [1, 3] must be >= 0 and sum to the axis size 5"));
  EXPECT_EQ(error_from([&] { split(x, 0); }).code, Code::invalid);
}

/// Tells a result from all others, and from its permutations.
double digest(const std::vector<double>& y) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += y[i] * static_cast<double>(i + 1);
  return sum;
}

TEST_F(Functions, TransposedConvolutionsAreThoseOfPyTorch) {
  Value x = feed("x", {1, 4, 3, 2}), w = feed("w", {4, 2, 2, 3}, -5);
  auto hold = [&](const ConvTranspose2dOptions& o, const Shape& shape, double want) {
    Value y = conv_transpose2d(x, w, o);
    EXPECT_EQ(y.shape(), shape);
    EXPECT_EQ(digest(values(y)), want);
  };
  hold({}, {1, 2, 4, 4}, 1560048);
  hold({.stride = {2, 3}, .padding = {1, 0}}, {1, 2, 4, 6}, 1522736);
  hold({.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 0}, .groups = 2}, {1, 4, 5, 3}, 2201876);
  hold({.stride = {3, 1}, .padding = {2, 1}, .output_padding = {2, 0}, .dilation = {2, 3}}, {1, 2, 7, 6}, 2245368);
  EXPECT_THAT(error_from([&] {
                conv_transpose2d(x, w, {.output_padding = {1, 0}});
              }).what(),
              HasSubstr("output_padding 1"));
  EXPECT_THAT(error_from([&] { conv_transpose2d(w, x); }).what(), HasSubstr("conv_transpose2d: x [4, 2, 2, 3]"));
}

TEST_F(Functions, GradientsToWhatIsNotReachedAreNullOrZeros) {
  Value x = feed("x", {2}, 1), y = feed("y", {3});
  Values d = gradients(sum(x * x), {x, y});
  EXPECT_FALSE(d[1]);
  d = gradients(sum(x * x), {x, y}, Unreached::zeros);
  EXPECT_THAT(values(d[0]), ElementsAre(2, 4));
  EXPECT_EQ(d[1].type(), y.type());
  EXPECT_THAT(values(d[1]), ElementsAre(0, 0, 0));
}

TEST_F(Functions, TheSecondDerivativeOfEluIsFiniteWhereItIsNotTaken) {
  Value x = feed("x", {2}, 100);
  Value once = gradients(sum(elu(x)), {x})[0];
  EXPECT_THAT(values(gradients(sum(once * once), {x})[0]), ElementsAre(0, 0)) << "e^x overflows f32 at 100";
}

}  // namespace
}  // namespace tutti
