// Channels-last convolutions by cuDNN's graph API over a cuDNN in host memory, whose nodes cudnn-frontend defines.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>

#include "tests/cuda/graph_fixture.h"
#include "tests/support/error_of.h"

namespace tutti::cuda {
namespace {

using codegen::Conv;
using codegen::cases::axis;
using codegen::cases::conv_case;
using codegen::cases::Convolution;
using testing::HasSubstr;
using ConvolutionGraphs = Graphs;

constexpr Convolution directions[] = {Convolution::forward, Convolution::images, Convolution::weights};
constexpr sdk::LibraryRequest trial{.trial = true};

Conv last(Conv p, bool bias = false, bool relu = false) {
  p.channels_last = true, p.bias = bias, p.relu = relu;
  return p;
}
Conv some(DType t = DType::bf16) { return last({t, 2, 8, 16, 1, axis(7, 3, 1, 1, 1), axis(5, 3, 1, 1, 1)}); }

codegen::LaunchList asked(const sdk::Library& l, Convolution direction, const Conv& p,
                          const sdk::LibraryRequest& request = {}) {
  if (direction == Convolution::images) return l.conv_dx(p, request);
  return direction == Convolution::weights ? l.conv_dw(p, request) : l.conv(p, request);
}

/// Odd sizes, no padding, strides, dilation, groups, one channel per group, one pixel, one tap, one channel.
std::vector<Conv> shapes(DType t) {
  return {some(t),
          last({t, 2, 3, 17, 1, axis(7, 3, 1, 0, 1), axis(5, 3, 1, 0, 1)}),
          last({t, 2, 4, 6, 2, axis(8, 3, 2, 1, 2), axis(13, 2, 3, 0, 1)}),
          last({t, 2, 6, 6, 6, axis(6, 3, 1, 1, 1), axis(6, 3, 1, 1, 1)}),
          last({t, 3, 5, 10, 5, axis(9, 3, 2, 1, 1), axis(7, 3, 2, 1, 1)}),
          last({t, 1, 17, 9, 1, axis(5, 1, 1, 0, 1), axis(7, 1, 1, 0, 1)}),
          last({t, 2, 4, 5, 1, axis(6, 1, 2, 0, 1), axis(7, 1, 2, 0, 1)}),
          last({t, 1, 2, 3, 1, axis(9, 2, 1, 3, 3), axis(8, 3, 1, 4, 2)}),
          last({t, 2, 1, 4, 1, axis(3, 3, 1, 0, 1), axis(3, 3, 1, 0, 1)})};
}

TEST_F(ConvolutionGraphs, AgreeWithFloat64) {
  auto l = library();
  for (DType t : {DType::bf16, DType::f16})
    for (const Conv& p : shapes(t))
      for (Convolution direction : directions) {
        Case c = conv_case(direction, p);
        SCOPED_TRACE(c.name);
        EXPECT_EQ(codegen::cases::compare(c, run(c, c.by_library(*l))), "");
      }
  EXPECT_EQ(graphs.executed, 54u);
}

TEST_F(ConvolutionGraphs, AddABiasAndApplyReLU) {
  auto l = library(fakes.tuner());
  for (DType t : {DType::bf16, DType::f16})
    for (const Conv& p : shapes(t))
      for (bool relu : {false, true}) {
        Case c = conv_case(Convolution::forward, last(p, true, relu));
        SCOPED_TRACE(c.name);
        EXPECT_EQ(codegen::cases::compare(c, run(c, l->conv(last(p, true, relu), trial))), "");
      }
}

TEST_F(ConvolutionGraphs, HandNaNOnThroughReLUOrAreDeclined) {
  Conv p = last(some(), true, true);
  Case c = conv_case(Convolution::forward, p,
                     [](std::vector<Array>& inputs) { inputs[0].at[20] = std::numeric_limits<double>::quiet_NaN(); });
  EXPECT_EQ(codegen::cases::compare(c, run(c, library(fakes.tuner())->conv(p, trial))), "");
  graphs.loses_nan = true;
  auto l = library(fakes.tuner());
  EXPECT_THAT(test::error_from([&] { l->conv(p, trial); }).what(), HasSubstr("does not propagate NaN"));
  EXPECT_NO_THROW(l->conv(last(p, true), trial));
}

TEST_F(ConvolutionGraphs, TakeOnlyPlansThatSumProducts) {
  auto algorithms = [&](cudnnBackendNumericalNote_t note) {
    graphs = fake::GraphState{.configurations = 1, .notes = {{0, note}}};
    return test::error_from([&] { library()->conv(some()); }).code;
  };
  EXPECT_EQ(algorithms(CUDNN_NUMERICAL_NOTE_WINOGRAD), Code::declined);
  EXPECT_EQ(algorithms(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4), Code::declined);
  EXPECT_EQ(algorithms(CUDNN_NUMERICAL_NOTE_FFT), Code::declined);
  EXPECT_EQ(algorithms(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION), Code::declined);
  EXPECT_EQ(algorithms(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC), Code::declined);
  graphs = fake::GraphState{.configurations = 1, .notes = {{0, CUDNN_NUMERICAL_NOTE_TENSOR_CORE}}};
  EXPECT_NO_THROW(library()->conv(some()));
}

TEST_F(ConvolutionGraphs, TakeOnlyPlansThatAreNotCompiledWhenBuilt) {
  graphs = fake::GraphState{.configurations = 1, .behaviors = {{0, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}}};
  EXPECT_EQ(test::error_from([&] { library()->conv(some()); }).code, Code::declined);
  graphs = fake::GraphState{.configurations = 2, .behaviors = {{0, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}}};
  EXPECT_NO_THROW(library()->conv(some()));
}

TEST_F(ConvolutionGraphs, TakePlansOfLittleMemory) {
  graphs.workspace = int64_t{256} << 20;
  EXPECT_EQ(library()->conv_dw(some()).scratch_bytes, std::vector<uint64_t>{uint64_t{256} << 20});
  graphs.workspace += 1;
  EXPECT_THAT(test::error_from([&] { library()->conv_dw(some()); }).what(), HasSubstr("workspace"));
}

TEST_F(ConvolutionGraphs, OfOneDescriptionAreBuiltOnce) {
  auto l = library();
  std::vector<Conv> different = {some(), last(some(), true)};
  different.push_back(some(DType::f16));
  different.push_back(some());
  different.back().h = axis(7, 3, 1, 2, 2);  // as many results
  for (const Conv& p : different)
    for (Convolution direction : directions) {
      if (p.bias && direction != Convolution::forward) continue;
      size_t before = graphs.descriptors;
      codegen::LaunchList one = asked(*l, direction, p);
      EXPECT_GT(graphs.descriptors, before);
      before = graphs.descriptors;
      codegen::LaunchList two = asked(*l, direction, p);
      EXPECT_EQ(graphs.descriptors, before);
    }
}

TEST_F(ConvolutionGraphs, AreDeclinedWithTheReason) {
  auto l = library(fakes.tuner());
  auto why = [&](const Conv& p) { return std::string(test::error_from([&] { l->conv(p, trial); }).what()); };
  EXPECT_THAT(why(some(DType::f32)), HasSubstr("not f32"));
  EXPECT_THAT(why(last(some(), false, true)), HasSubstr("ReLU without bias"));
  Conv empty = some();
  empty.batch = 0;
  EXPECT_THAT(why(empty), HasSubstr("no elements"));
  graphs.fails = true;
  EXPECT_EQ(test::error_from([&] { l->conv_dx(some(), trial); }).code, Code::declined);
  EXPECT_THAT(test::error_from([&] { library()->conv(last(some(), true, true)); }).what(), HasSubstr("autotuning"));
}

TEST_F(ConvolutionGraphs, NeedTheGraphAPIAndCapability80) {
  CudnnApi api = fake::cudnn();
  auto why = [&](int capability) {
    auto l = join(nullptr, std::make_shared<Cudnn>(api, false, nullptr, nullptr, capability));
    Error e = test::error_from([&] { l->conv(some()); });
    EXPECT_EQ(e.code, Code::declined);
    return std::string(e.what());
  };
  EXPECT_THAT(why(90), HasSubstr("no graph API"));
  api.library = dlopen(nullptr, RTLD_NOW);
  EXPECT_THAT(why(0), HasSubstr("no graph API"));
  EXPECT_THAT(why(75), HasSubstr("not on 7.5"));
}

}  // namespace
}  // namespace tutti::cuda
