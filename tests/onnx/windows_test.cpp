// Pools and transposed convolutions over 1, 2, … : what onnxruntime 1.32 gives (window_models.py asks it again).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "graph/eval.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "onnx/lower.h"
#include "onnx/raise.h"
#include "tests/support/error_of.h"

namespace tutti::onnx {
namespace {

using Attributes = std::map<std::string, Attribute>;

Tensor counting(const Shape& shape) {
  Tensor t({DType::f32, shape});
  std::iota(t.at.begin(), t.at.end(), 1.0);
  return t;
}

/// One node over inputs that count from 1.
Tensor result(const std::string& op, const std::vector<Shape>& shapes, const Attributes& attributes) {
  Model m{.path = "m.onnx", .opset = 19};
  Graph g;
  std::map<std::string, Input> inputs;
  std::map<std::string, Tensor> fed;
  Node node{.op = op, .outputs = {"y"}, .attributes = attributes};
  for (const Shape& s : shapes) {
    std::string name = fmt::format("x{}", node.inputs.size());
    node.inputs.push_back(name);
    m.inputs.push_back({.name = name, .type = element_type(DType::f32), .has_shape = true, .shape = s});
    inputs[name] = {g.feed(name, {DType::f32, s})};
    fed[name] = counting(s);
  }
  m.nodes.push_back(node);
  m.outputs.push_back({.name = "y", .type = element_type(DType::f32)});
  return evaluate(g, fed, {lower(m, g, inputs).at(0)}).at(0);
}

void expect(const Tensor& y, const Shape& shape, const std::vector<double>& numbers) {
  ASSERT_EQ(y.shape(), shape);
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_NEAR(y.at[i], numbers[i], 1e-6 * (1 + numbers[i])) << i;
}

const Ints two = {2, 2}, three = {3, 3}, around = {1, 1, 1, 1}, behind = {0, 0, 1, 1};
constexpr int64_t yes = 1;

TEST(OnnxWindows, AveragesCountNothingBeyondThePaddedImage) {
  const char* op = "AveragePool";
  expect(result(op, {{1, 1, 4, 4}},
                {{"kernel_shape", three},
                 {"strides", two},
                 {"pads", around},
                 {"ceil_mode", yes},
                 {"count_include_pad", yes}}),
         {1, 1, 3, 3}, {14. / 9, 10. / 3, 2, 19. / 3, 11, 6, 4.5, 7.5, 4});
  expect(result(op, {{1, 1, 4, 4}}, {{"kernel_shape", three}, {"strides", two}, {"pads", around}, {"ceil_mode", yes}}),
         {1, 1, 3, 3}, {3.5, 5, 6, 9.5, 11, 12, 13.5, 15, 16});
  expect(result(op, {{1, 1, 10}},
                {{"kernel_shape", Ints{3}},
                 {"strides", Ints{4}},
                 {"pads", Ints{1, 1}},
                 {"dilations", Ints{2}},
                 {"ceil_mode", yes},
                 {"count_include_pad", yes}}),
         {1, 1, 3}, {2, 6, 9});
  expect(result(op, {{1, 1, 10}},
                {{"kernel_shape", Ints{3}},
                 {"strides", Ints{4}},
                 {"pads", Ints{0, 2}},
                 {"ceil_mode", yes},
                 {"count_include_pad", yes}}),
         {1, 1, 3}, {2, 6, 19. / 3});
  expect(result(op, {{1, 1, 5, 5}},
                {{"kernel_shape", two},
                 {"strides", two},
                 {"auto_pad", "SAME_LOWER"},
                 {"ceil_mode", yes},
                 {"count_include_pad", yes}}),
         {1, 1, 3, 3}, {0.25, 1.25, 2.25, 4.25, 10, 12, 9.25, 20, 22});
  expect(result(op, {{1, 1, 3, 3, 4}},
                {{"kernel_shape", Ints{2, 2, 3}},
                 {"strides", Ints{2, 2, 2}},
                 {"pads", Ints{0, 1, 1, 0, 1, 1}},
                 {"ceil_mode", yes},
                 {"count_include_pad", yes}}),
         {1, 1, 2, 2, 3}, {2.5, 4.5, 2.5, 9, 15, 8, 8.5, 13.5, 7, 21, 33, 17});
}

TEST(OnnxWindows, OtherPools) {
  // A window that would start in the padding behind is dropped.
  expect(result("MaxPool", {{1, 1, 4, 4}},
                {{"kernel_shape", two}, {"strides", two}, {"pads", behind}, {"ceil_mode", yes}}),
         {1, 1, 2, 2}, {6, 8, 14, 16});
  expect(result("LpPool", {{1, 1, 5, 5}}, {{"kernel_shape", two}, {"strides", two}, {"ceil_mode", yes}, {"p", yes}}),
         {1, 1, 3, 3}, {16, 24, 15, 56, 64, 35, 43, 47, 25});
}

TEST(OnnxWindows, PoolsThatNobodyDefines) {
  auto why = [](const std::string& op, const Attributes& a) {
    return test::error_of([&] { result(op, {{1, 1, 4, 4}}, a); });
  };
  const Ints far = {2, 2, 0, 0}, five = {5, 5};
  for (const char* op : {"AveragePool", "MaxPool"}) {
    EXPECT_NE(why(op, {{"kernel_shape", two}, {"strides", two}, {"pads", far}}).find("covers only padding"),
              std::string::npos);
    EXPECT_NE(
        why(op, {{"kernel_shape", five}, {"strides", two}, {"dilations", two}}).find("a kernel [5, 5] does not fit"),
        std::string::npos);
    EXPECT_NE(
        why(op, {{"kernel_shape", three}, {"strides", two}, {"auto_pad", "VALID"}, {"ceil_mode", yes}}).find("VALID"),
        std::string::npos);
  }
}

// An average with ceil_mode leaves as a plain one over a padded image, and comes back to the same numbers.
TEST(OnnxWindows, CeilModeComesBackFromAnExport) {
  for (bool counts : {false, true}) {
    Pool2dOptions o{
        .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .count_include_pad = counts, .ceil_mode = true};
    Graph g, again;
    Value y = avg_pool2d(g.feed("x", {DType::f32, {1, 1, 4, 4}}), o);
    g.set_state("y", y);
    Value x = again.feed("x", {DType::f32, {1, 1, 4, 4}});
    Tensor back =
        evaluate(again, {{"x", counting({1, 1, 4, 4})}}, {lower(raise(g, {{"y", "y"}}), again, {{"x", {x}}}).at(0)})[0];
    expect(back, {1, 1, 3, 3}, evaluate(g, {{"x", counting({1, 1, 4, 4})}}, {y})[0].at);
    expect(back, {1, 1, 3, 3},
           counts ? std::vector<double>{14. / 9, 10. / 3, 2, 19. / 3, 11, 6, 4.5, 7.5, 4}
                  : std::vector<double>{3.5, 5, 6, 9.5, 11, 12, 13.5, 15, 16});
  }
}

Tensor transposed(int64_t size, const std::string& automatic, int64_t extra = 0) {
  Attributes a = {{"strides", Ints{2}}, {"output_padding", Ints{extra}}};
  if (size > 0) a["output_shape"] = Ints{size};
  if (!automatic.empty()) a["auto_pad"] = automatic;
  return result("ConvTranspose", {{1, 1, 3}, {1, 1, 3}}, a);  // all of it: 1 2 5 4 9 6 9
}

TEST(OnnxWindows, OddPaddingOfAnOutputShape) {
  for (const char* text : {"", "NOTSET", "VALID", "SAME_LOWER"}) {
    expect(transposed(4, text), {1, 1, 4}, {5, 4, 9, 6});
    expect(transposed(6, text), {1, 1, 6}, {2, 5, 4, 9, 6, 9});
  }
  expect(transposed(4, "SAME_UPPER"), {1, 1, 4}, {2, 5, 4, 9});
  expect(transposed(6, "SAME_UPPER"), {1, 1, 6}, {1, 2, 5, 4, 9, 6});
  expect(transposed(0, "SAME_LOWER"), {1, 1, 6}, {2, 5, 4, 9, 6, 9});
  expect(transposed(5, "", 1), {1, 1, 5}, {5, 4, 9, 6, 9});
  expect(transposed(8, ""), {1, 1, 8}, {1, 2, 5, 4, 9, 6, 9, 0});
  expect(transposed(8, "SAME_UPPER"), {1, 1, 8}, {1, 2, 5, 4, 9, 6, 9, 0});
  EXPECT_NE(test::error_of([] { transposed(9, ""); }).find("output size 9 of spatial axis 0, expected 1 to 8"),
            std::string::npos);
  EXPECT_NE(test::error_of([] { transposed(4, "SAME"); }).find("auto_pad must be NOTSET"), std::string::npos);
  EXPECT_NE(test::error_of([] {
              result("ConvTranspose", {{1, 1, 3}, {1, 1, 2}}, {{"strides", Ints{3}}, {"auto_pad", "SAME_UPPER"}});
            }).find("kernel smaller than the stride 3"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::onnx
