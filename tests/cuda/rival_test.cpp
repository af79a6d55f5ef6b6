// Convolutions of the library beside portable kernels, by the fake clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/driver.h"
#include "sdk/rendered/rendered.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/fake_host.h"
#include "tests/sdk/raw_program.h"

namespace tutti::cuda {
namespace {

using testing::Contains;
using testing::HasSubstr;

[[maybe_unused]] const int traced = setenv("TUTTI_TRACE", "dispatch", 1);  // which is read once

/// The state y = conv2d of images and filters of ones, in states.
struct OneConvolution : test::RawProgram {
  explicit OneConvolution(uint32_t dtype) {
    uint32_t x = value(TUTTI_STATE, dtype, {2, 3, 8, 8}, "x"), w = value(TUTTI_STATE, dtype, {4, 3, 3, 3}, "w");
    uint32_t y = value(TUTTI_TEMP, dtype, {2, 4, 6, 6});
    static const int64_t ones[] = {1, 1}, zeros[] = {0, 0}, groups = 1;
    node("conv2d", {x, w}, {y});
    attrs({{"dilation", TUTTI_ATTR_I64, 2, ones},
           {"groups", TUTTI_ATTR_I64, 1, &groups},
           {"padding", TUTTI_ATTR_I64, 2, zeros},
           {"stride", TUTTI_ATTR_I64, 2, ones}});
    states = {{"x", x, x}, {"w", w, w}, {"y", TUTTI_NONE, y}};
  }
};

class Rivals : public testing::Test {
 protected:
  fake::FakeDevice fakes;
  fake::State& device = fakes.seen;
  fake::CudnnState& library = fakes.convolutions;
  fake::CacheHost host;
  double kernel_cost = 0.02;  ///< milliseconds
  uint64_t room = 1 << 20;    ///< for tuning
  bool tf32 = false;

  Rivals() {
    device.memory = 64 << 20;
    device.kernel = [this](CUfunction, void**) { return [this] { device.clock += kernel_cost; }; };
    costs(0.03);
  }
  void costs(double milliseconds) { library.costs = {{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, milliseconds}}; }
  /// Whether a step's convolution is the library's.
  bool takes(uint32_t dtype = TUTTI_F32) {
    host.lines.clear();
    auto driver = std::make_unique<Driver>(fakes.libraries, find_devices(*fakes.libraries).at(0),
                                           [this] { return fakes.library(tf32, host.host()); });
    auto session = sdk::make_rendered_session(std::move(driver), host.host());
    TuttiOptions options = {sizeof(TuttiOptions), room ? uint32_t{TUTTI_OPT_TUNE} : 0u, room};
    auto executable = session->compile(sdk::Program::parse(OneConvolution(dtype).raw()), options);
    executable->prepare();
    int convolutions = library.convolutions;
    session->wait(executable->run(), ~0ull);
    return library.convolutions > convolutions;
  }
};

TEST_F(Rivals, TheFasterIsTakenAndKept) {
  EXPECT_FALSE(takes());
  EXPECT_THAT(host.lines, Contains(HasSubstr("portable kernels take 20.0 us, it 30.0 us")));
  EXPECT_THAT(host.lines, Contains(HasSubstr("conv2d → portable conv (library: portable kernels take")));
  costs(0.01);
  EXPECT_FALSE(takes()) << "or two runs would not have the same bits";
  room = 0;
  EXPECT_FALSE(takes()) << "nor with less memory";
  room = 1 << 20;
  host.entries.clear();
  EXPECT_TRUE(takes());
  costs(0.03);
  EXPECT_TRUE(takes());
  EXPECT_EQ(device.allocated, 0u);
  EXPECT_EQ(device.live_modules, 0u);
}

TEST_F(Rivals, ConvolutionsOnTensorCoresAreNotCompared) {
  EXPECT_TRUE(takes(TUTTI_BF16));
  tf32 = true;
  EXPECT_TRUE(takes());
  EXPECT_EQ(device.compiled, 0u);
}

TEST_F(Rivals, WithoutMemoryCacheOrTuningTheLibraryIsUsed) {
  room = 0;
  EXPECT_TRUE(takes());
  room = 1 << 20;
  setenv("TUTTI_CUDA_TUNE", "0", 1);
  EXPECT_TRUE(takes());
  unsetenv("TUTTI_CUDA_TUNE");
  host.keeps = false;
  EXPECT_TRUE(takes());
}

TEST_F(Rivals, AFastCallOrAKernelThatFailsCostsNothing) {
  costs(0);
  EXPECT_TRUE(takes());
  EXPECT_EQ(device.compiled, 0u);
  costs(0.03);
  host.entries.clear();
  device.compile_error = "error: no";
  EXPECT_TRUE(takes());
  EXPECT_THAT(host.lines, Contains(HasSubstr("not compared with portable kernels")));
}

}  // namespace
}  // namespace tutti::cuda
