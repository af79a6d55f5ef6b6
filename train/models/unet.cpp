// U-Net (Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation", 2015) with batch_norm
// and padded convolutions; the parameter names of milesial/Pytorch-UNet.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/ops/concat.h"
#include "nn/norms.h"
#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

/// Two 3x3 convolutions, each with batch_norm and relu.
struct DoubleConv {
  int64_t channels;
  Value forward(Builder& b, Value x) const {
    Conv2d conv(channels, 3, {.padding = 1, .bias = false});
    return b("double_conv", Sequential{conv, BatchNorm(), Relu(), conv, BatchNorm(), Relu()}, x);
  }
};

/// Upsamples by 2 and concatenates the skip connection.
struct Up {
  int64_t channels;
  Value forward(Builder& b, Value x, Value skip) const {
    x = b("up", ConvTranspose2d(channels, 2, {.stride = 2}), x);
    return b("conv", DoubleConv{channels}, concat({skip, x}, 1));
  }
};

struct Unet {
  int64_t classes, base = 32, levels = 4;  ///< base: channels of the first level, doubled at each further level
  Value forward(Builder& b, Value x) const {
    Values skips = {b("inc", DoubleConv{base}, x)};
    for (int64_t i = 1; i <= levels; ++i)
      skips.push_back(b(fmt::format("down{}", i),
                        Named{"maxpool_conv", Sequential{MaxPool2d(2), DoubleConv{base << i}}}, skips.back()));
    x = skips.back();
    for (int64_t i = 1; i <= levels; ++i) {
      int64_t level = levels - i;
      x = b(fmt::format("up{}", i), Up{base << level}, x, skips[static_cast<size_t>(level)]);
    }
    return b("outc", Named{"conv", Conv2d(classes, 1)}, x);
  }
  std::string describe() const { return fmt::format("Unet({}, base {}, {} levels)", classes, base, levels); }

 private:
  /// A module with a single named submodule.
  struct Named {
    const char* name;
    Layer module;
    Value forward(Builder& b, Value x) const { return b(name, module, x); }
  };
};

Task task(const ModelOptions& o, const data::Source& train) {
  Unet unet{.classes = 2};
  if (o.size == "tiny") unet = {.classes = 2, .base = 4, .levels = 2};
  expect_images("unet", o, train, unet.levels);
  data::Column image = train.column("input"), label = train.column("label");
  const Shape& s = image.type.shape;
  if (label.type.shape != Shape{s[1], s[2]})
    throw invalid(fmt::format("unet needs a class for every pixel, but {} has {} and {}", o.data, to_string(image.type),
                              to_string(label.type)),
                  "use " + option_text("data", "shapes:64"));
  unet.classes = std::max<int64_t>(label.classes, 2);
  return segmentation(unet);
}

}  // namespace

extern const ModelDef unet_model{
    .name = "unet",
    .doc = "U-Net: predicts the class of every pixel, by convolutions at five scales with skip connections",
    .sizes = {{.name = "default", .doc = "4 levels, 32 to 512 channels, images of 64x64", .batch = 8, .eval_batch = 16},
              {.name = "tiny", .doc = "2 levels, 4 to 16 channels, images of 16x16", .batch = 4, .eval_batch = 4}},
    .build = task,
    .synthetic =
        [](const ModelOptions& o, int64_t samples) {
          return fmt::format("shapes:{}:{}:16", o.size == "tiny" ? 16 : 64, std::min<int64_t>(samples, 4096));
        },
    .data = "shapes:64:4096:512"};

}  // namespace tutti
