// Layout of images in the plan of a training step: channels-last if the device's library has all its convolutions.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cuda/graph_plan.h"
#include "tests/cuda/layout_library.h"
#include "tests/support/model_step.h"

namespace tutti::cuda {
namespace {

sdk::RenderedPlan step(const char* name, const char* size, const sdk::Library* library) {
  return plan(
      test::training_step(name, size, 32, {.optimizer = Sgd{.lr = 0.1, .momentum = 0.9}, .precision = Precision::bf16}),
      library);
}

size_t count(const sdk::RenderedPlan& p, const std::string& part) {
  return static_cast<size_t>(std::ranges::count_if(
      p.launches, [&](const sdk::PlannedLaunch& l) { return l.name.find(part) != std::string::npos; }));
}

TEST(CudaPlans, ImagesAreChannelsLastWhereTheLibraryHasAllConvolutions) {
  ChannelsLastLibrary library;
  sdk::RenderedPlan p = step("resnet18", "cifar", &library);
  EXPECT_EQ(count(p, "library: conv2d_nhwc in"), 20u);
  EXPECT_EQ(count(p, "library: conv2d_nhwc_dx"), 19u) << "the images themselves have no gradient";
  EXPECT_EQ(count(p, "library: conv2d_nhwc_dw"), 20u);
  EXPECT_EQ(count(p, "portable conv"), 0u);
  EXPECT_EQ(count(p, "copy to state"), 0u) << "running statistics are computed in place";
  // Per batch norm five launches forward and three backward; copies of weights and gradients share launches.
  EXPECT_LE(p.launches.size(), 280u);
}

TEST(CudaPlans, ImagesAreNotChannelsLastIfTheLibraryLacksSomeConvolutions) {
  ChannelsLastLibrary library;
  library.grouped = false;
  sdk::RenderedPlan p = step("mobilenet_v2", "cifar", &library);
  EXPECT_EQ(count(p, "nhwc"), 0u);
  EXPECT_EQ(p.launches.size(), step("mobilenet_v2", "cifar", nullptr).launches.size());
}

TEST(CudaPlans, ImagesAreNotChannelsLastWhereTransposesCostMore) {
  ChannelsLastLibrary library;  // group norms have no channels-last form
  EXPECT_EQ(count(step("diffusion", "default", &library), "nhwc"), 0u);
  EXPECT_GT(count(step("unet", "default", &library), "nhwc"), 0u);
}

TEST(CudaPlans, ConvolutionsRunOnCopiesIfTheLibraryDeclinesThemAtTheEnd) {
  ChannelsLastLibrary library;
  library.declines_when_run = true;
  sdk::RenderedPlan p = step("resnet18", "cifar", &library);
  EXPECT_TRUE(std::ranges::none_of(p.launches, [](const sdk::PlannedLaunch& l) { return l.library != nullptr; }));
  EXPECT_GE(count(p, "conv2d_nhwc"), 4 * 59u) << "copies, a convolution and a copy each";
}

}  // namespace
}  // namespace tutti::cuda
