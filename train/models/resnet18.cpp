// ResNet-18 (He et al., "Deep residual learning for image recognition", 2016), with torchvision's parameter names.
#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops/add.h"
#include "graph/ops/global_avg_pool.h"
#include "graph/ops/relu.h"
#include "nn/norms.h"
#include "train/model.h"
#include "train/tasks.h"

namespace tutti {
namespace {

using namespace nn;

Conv2d conv(int64_t channels, int64_t kernel, int64_t stride) {
  return Conv2d(channels, kernel,
                {.stride = stride, .padding = kernel / 2, .bias = false, .init = Scheme::kaiming_normal_out});
}

/// Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where shapes differ.
struct BasicBlock {
  int64_t channels, stride;
  Value forward(Builder& b, Value x) const {
    Value y = relu(b("bn1", BatchNorm(), b("conv1", conv(channels, 3, stride), x)));
    y = b("bn2", BatchNorm(), b("conv2", conv(channels, 3, 1), y));
    if (stride != 1 || x.shape()[1] != channels)
      x = b("downsample", Sequential{conv(channels, 1, stride), BatchNorm()}, x);
    return relu(y + x);
  }
};

struct ResNet18 {
  int64_t classes, width = 64;
  bool small_images = true;  ///< CIFAR's stem: 3x3 without a pool; else ImageNet's, 7x7 with stride 2 and a pool
  Value forward(Builder& b, Value x) const {
    x = b("conv1", small_images ? conv(width, 3, 1) : conv(width, 7, 2), x);
    x = relu(b("bn1", BatchNorm(), x));
    if (!small_images) x = MaxPool2d(3, 2, 1).forward(b, x);
    for (int64_t layer = 0; layer < 4; ++layer) {
      int64_t channels = width << layer, stride = layer == 0 ? 1 : 2;
      x = b(fmt::format("layer{}", layer + 1), Sequential{BasicBlock{channels, stride}, BasicBlock{channels, 1}}, x);
    }
    return b("fc", Linear(classes), Flatten().forward(b, global_avg_pool(x)));
  }
  std::string describe() const { return fmt::format("ResNet18({}, width {})", classes, width); }
};

Task task(const ModelOptions& o, const data::Source& train) {
  data::Column image = train.column("input");
  if (image.type.shape.size() != 3)
    throw invalid(fmt::format("resnet18 takes images [C, H, W], {} has {}", o.data, to_string(image.type)), "use mlp");
  return classification(ResNet18{.classes = std::max<int64_t>(train.column("label").classes, 2),
                                 .width = o.size == "tiny" ? 4 : 64,
                                 .small_images = o.size != "imagenet"});
}

}  // namespace

extern const ModelDef resnet18_model;
const ModelDef resnet18_model{
    .name = "resnet18",
    .doc = "ResNet-18 for images, batch_norm, residual blocks of 64 to 512 channels",
    .sizes = {{.name = "cifar", .doc = "3x3 stem, for images of 32x32", .batch = 32, .eval_batch = 64, .lr = 0.1},
              {.name = "imagenet",
               .doc = "7x7 stem and pool, for images of 224x224",
               .batch = 16,
               .eval_batch = 16,
               .lr = 0.1},
              {.name = "tiny", .doc = "4 to 32 channels, for images of 16x16", .batch = 4, .eval_batch = 4, .lr = 0.1}},
    .task = task,
    .made_up =
        [](const ModelOptions& o, int64_t samples) {
          const char* shape = o.size == "tiny" ? "3x16x16" : o.size == "imagenet" ? "3x224x224" : "3x32x32";
          return fmt::format("synthetic:{}:10:{}:16", shape,
                             o.size == "imagenet" ? std::min<int64_t>(samples, 256) : samples);
        },
    .optimizer = "sgd"};

}  // namespace tutti
