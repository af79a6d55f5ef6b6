// ResNet-34 (He et al., "Deep residual learning for image recognition", 2016), with torchvision's parameter names.
#include "nn/resnet.h"
#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using nn::ResNet;

Task task(const ModelOptions& o, const data::Source& train) {
  bool tiny = o.size == "tiny";
  return classification(ResNet({.block = ResNet::Block::basic,
                                .blocks = tiny ? Ints{1, 2, 1, 1} : Ints{3, 4, 6, 3},
                                .width = tiny ? 4 : 64,
                                .stem = o.size == "imagenet" ? ResNet::Stem::imagenet : ResNet::Stem::cifar,
                                .classes = image_classes("resnet34", o, train).classes}));
}

}  // namespace

extern const ModelDef resnet34_model{
    .name = "resnet34",
    .doc = "ResNet-34 for images: as ResNet-18, with 3, 4, 6 and 3 blocks per stage",
    .sizes = {{.name = "cifar", .doc = "3x3 stem, for images of 32x32", .batch = 32, .eval_batch = 64},
              {.name = "imagenet", .doc = "7x7 stem and pool, for images of 224x224", .batch = 16, .eval_batch = 16},
              {.name = "tiny",
               .doc = "1 or 2 blocks a layer, 4 to 32 channels, for images of 16x16",
               .batch = 4,
               .eval_batch = 4}},
    .build = task,
    .synthetic = synthetic_sized_images};

}  // namespace tutti
