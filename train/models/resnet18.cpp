// ResNet-18 (He et al., "Deep residual learning for image recognition", 2016), with torchvision's parameter names.
#include "nn/resnet.h"
#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using nn::ResNet;

Task task(const ModelOptions& o, const data::Source& train) {
  return classification(ResNet({.block = ResNet::Block::basic,
                                .blocks = {2, 2, 2, 2},
                                .width = o.size == "tiny" ? 4 : 64,
                                .stem = o.size == "imagenet" ? ResNet::Stem::imagenet : ResNet::Stem::cifar,
                                .classes = image_classes("resnet18", o, train).classes}));
}

}  // namespace

extern const ModelDef resnet18_model{
    .name = "resnet18",
    .doc = "ResNet-18 for images: residual blocks of 64 to 512 channels, with batch_norm",
    .sizes = {{.name = "cifar", .doc = "3x3 stem, for images of 32x32", .batch = 32, .eval_batch = 64, .lr = 0.1},
              {.name = "imagenet",
               .doc = "7x7 stem and pool, for images of 224x224",
               .batch = 16,
               .eval_batch = 16,
               .lr = 0.1},
              {.name = "tiny", .doc = "4 to 32 channels, for images of 16x16", .batch = 4, .eval_batch = 4, .lr = 0.1}},
    .build = task,
    .synthetic = synthetic_sized_images,
    .optimizer = "sgd"};

}  // namespace tutti
