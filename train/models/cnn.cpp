// Two convolutions and two linear layers, for images.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

Layer tiny() {
  return Sequential{Conv2d(6, 3, {.padding = 1}),
                    Relu(),
                    MaxPool2d(2),
                    Conv2d(8, 3, {.padding = 1}),
                    Relu(),
                    MaxPool2d(2),
                    Flatten(),
                    Linear(10)};
}

Task task(const ModelOptions& o, const data::Source& train) {
  data::Column image = train.column("input"), label = train.column("label");
  const Shape& s = image.type.shape;
  if (s.size() != 3 || s[1] < 4 || s[2] < 4)
    throw invalid(
        fmt::format("cnn needs images [C, H, W] of at least 4x4, but {} has {}", o.data, to_string(image.type)),
        "use mlp");
  return classification(o.size == "tiny" ? tiny() : small_cnn(std::max<int64_t>(10, label.classes), o.net));
}

}  // namespace

extern const ModelDef cnn_model{
    .name = "cnn",
    .doc = "conv3x3(32)-relu-pool2, conv3x3(64)-relu-pool2, fc128-relu-fc10",
    .sizes =
        {{.name = "default", .doc = "for images of at least 4x4"},
         {.name = "tiny", .doc = "6 and 8 channels, for images of 12x12", .batch = 8, .eval_batch = 8, .fixed = true}},
    .build = task,
    .synthetic =
        [](const ModelOptions& o, int64_t samples) {
          return fmt::format("synthetic:{}:10:{}:16", o.size == "tiny" ? "1x12x12" : "1x28x28", samples);
        },
    .data = "fashion-mnist",
    .takes = {"activation", "dropout", "init"}};

}  // namespace tutti
