// ResNet-50 (He et al., "Deep residual learning for image recognition", 2016), with torchvision's parameter names.
#include "nn/resnet.h"
#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using nn::ResNet;

Task task(const ModelOptions& o, const data::Source& train) {
  bool tiny = o.size == "tiny";
  return classification(ResNet({.block = ResNet::Block::bottleneck,
                                .blocks = tiny ? Ints{1, 2, 2, 1} : Ints{3, 4, 6, 3},
                                .width = tiny ? 2 : 64,
                                .stem = o.size == "imagenet" ? ResNet::Stem::imagenet : ResNet::Stem::cifar,
                                .classes = image_classes("resnet50", o, train).classes}));
}

}  // namespace

extern const ModelDef resnet50_model{
    .name = "resnet50",
    .doc = "ResNet-50 for images: bottleneck blocks of 256 to 2048 channels",
    .sizes = {{.name = "cifar", .doc = "3x3 stem, for images of 32x32", .batch = 32, .eval_batch = 64},
              {.name = "imagenet", .doc = "7x7 stem and pool, for images of 224x224", .batch = 16, .eval_batch = 16},
              {.name = "tiny",
               .doc = "1 or 2 blocks a layer, 8 to 64 channels, for images of 16x16",
               .batch = 4,
               .eval_batch = 4}},
    .build = task,
    .synthetic = synthetic_sized_images};

}  // namespace tutti
