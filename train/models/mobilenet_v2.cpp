// MobileNetV2 (Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks", 2018), with torchvision's
// parameter names.
#include <fmt/format.h>

#include "graph/ops/add.h"
#include "graph/ops/global_avg_pool.h"
#include "nn/norms.h"
#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

Conv2d conv(int64_t channels, int64_t kernel, int64_t stride = 1, int64_t groups = 1) {
  return Conv2d(
      channels, kernel,
      {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false, .init = Scheme::kaiming_normal_out});
}

Sequential normalised(Conv2d conv) { return {std::move(conv), BatchNorm(), Relu6()}; }

/// Expands the channels, applies a depthwise convolution and projects back without activation; a shortcut if the shapes
/// are equal.
struct InvertedResidual {
  int64_t expansion, channels, stride;
  Value forward(Builder& b, Value x) const {
    int64_t inputs = x.shape()[1], hidden = inputs * expansion;
    std::vector<Layer> layers;
    if (expansion != 1) layers.emplace_back(normalised(conv(hidden, 1)));
    layers.emplace_back(normalised(conv(hidden, 3, stride, hidden)));
    layers.emplace_back(conv(channels, 1));
    layers.emplace_back(BatchNorm());
    Value y = b("conv", Sequential(std::move(layers)), x);
    return stride == 1 && inputs == channels ? x + y : y;
  }
};

struct Stage {
  int64_t expansion, channels, blocks, stride;
};

struct MobileNetV2 {
  int64_t classes, stem, stem_stride;
  std::vector<Stage> stages;
  int64_t last;  ///< channels before pooling
  double dropout;
  Value forward(Builder& b, Value x) const {
    std::vector<Layer> layers = {normalised(conv(stem, 3, stem_stride))};
    for (const Stage& s : stages)
      for (int64_t k = 0; k < s.blocks; ++k)
        layers.emplace_back(InvertedResidual{s.expansion, s.channels, k == 0 ? s.stride : 1});
    layers.emplace_back(normalised(conv(last, 1)));
    x = b("features", Sequential(std::move(layers)), x);
    return b("classifier", Sequential{Dropout(dropout), Linear(classes)}, Flatten().forward(b, global_avg_pool(x)));
  }
  std::string describe() const { return fmt::format("MobileNetV2({}, {} to {} channels)", classes, stem, last); }
};

Task task(const ModelOptions& o, const data::Source& train) {
  int64_t classes = image_classes("mobilenet_v2", o, train).classes;
  if (o.size == "tiny")
    return classification(MobileNetV2{.classes = classes,
                                      .stem = 4,
                                      .stem_stride = 1,
                                      .stages = {{1, 4, 1, 1}, {2, 6, 2, 2}, {2, 8, 1, 1}},
                                      .last = 16,
                                      .dropout = 0});
  int64_t first = o.size == "imagenet" ? 2 : 1;  // no stride for small images in the stem and the second stage
  return classification(MobileNetV2{.classes = classes,
                                    .stem = 32,
                                    .stem_stride = first,
                                    .stages = {{1, 16, 1, 1},
                                               {6, 24, 2, first},
                                               {6, 32, 3, 2},
                                               {6, 64, 4, 2},
                                               {6, 96, 3, 1},
                                               {6, 160, 3, 2},
                                               {6, 320, 1, 1}},
                                    .last = 1280,
                                    .dropout = 0.2});
}

}  // namespace

extern const ModelDef mobilenet_v2_model{
    .name = "mobilenet_v2",
    .doc = "MobileNetV2 for images: inverted residual blocks with depthwise convolutions",
    .sizes = {{.name = "cifar",
               .doc = "stem and second stage with stride 1, for images of 32x32",
               .batch = 32,
               .eval_batch = 64,
               .lr = 3e-3},
              {.name = "imagenet", .doc = "for images of 224x224", .batch = 16, .eval_batch = 16, .lr = 3e-3},
              {.name = "tiny",
               .doc = "four blocks of 4 to 8 channels, for images of 16x16",
               .batch = 4,
               .eval_batch = 4,
               .lr = 3e-3}},
    .build = task,
    .synthetic = synthetic_sized_images};

}  // namespace tutti
