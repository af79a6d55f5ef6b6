// Two convolutions and two linear layers, for images.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "nn/model.h"

namespace tutti::nn {
namespace {

Layer make(const ModelOptions& o, const TensorType& sample, int64_t classes) {
  if (sample.shape.size() != 3 || sample.shape[1] < 4 || sample.shape[2] < 4)
    throw invalid(fmt::format("cnn takes images [C, H, W] of at least 4x4, {} has {}", o.data, to_string(sample)),
                  "use mlp");
  return small_cnn(std::max<int64_t>(10, classes), o.net);
}

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

}  // namespace

extern const ModelDef cnn_model;
const ModelDef cnn_model{.name = "cnn",
                         .doc = "conv3x3(32)-relu-pool2, conv3x3(64)-relu-pool2, fc128-relu-fc10",
                         .make = make,
                         .sample =
                             [](const ModelOptions&, int64_t& classes) {
                               classes = 10;
                               return TensorType{DType::f32, {1, 28, 28}};
                             },
                         .standard = []() -> Layer { return small_cnn(10); },
                         .tiny = tiny,
                         .batch = 16};

}  // namespace tutti::nn
