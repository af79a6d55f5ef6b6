// ResNet (He et al., 2016), version 1.5: the stride of a bottleneck is in its 3x3 convolution unless configured.
#include <fmt/format.h>

#include "graph/ops/add.h"
#include "graph/ops/global_avg_pool.h"
#include "nn/modules.h"
#include "nn/norms.h"
#include "train/hf/family.h"
#include "train/hf/labels.h"
#include "train/io/weight_names.h"
#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti::hf {
namespace {

using namespace nn;

struct ResNetOptions {
  int64_t channels, stem, classes;
  std::vector<int64_t> widths, depths;
  std::string activation;
  bool bottleneck, first_halves, early;  ///< early: a bottleneck's stride is in its first convolution
};

/// A convolution and its normalization.
struct ConvLayer {
  int64_t channels, kernel, stride;
  Value forward(Builder& b, Value x) const {
    Conv2d conv(channels, kernel,
                {.stride = stride, .padding = kernel / 2, .bias = false, .init = Scheme::kaiming_normal_out});
    return b("normalization", BatchNorm(), b("convolution", conv, x));
  }
};

struct Residual {
  const ResNetOptions& o;
  int64_t channels, stride;
  Value forward(Builder& b, Value x) const {
    Activation act = activation(o.activation);
    auto conv = [&](int i, int64_t out, int64_t kernel, int64_t step, Value y) {
      return b(fmt::format("layer.{}", i), ConvLayer{out, kernel, step}, y);
    };
    Value y;
    if (o.bottleneck) {
      int64_t inner = channels / 4;
      y = act.forward(b, conv(0, inner, 1, o.early ? stride : 1, x));
      y = act.forward(b, conv(1, inner, 3, o.early ? 1 : stride, y));
      y = conv(2, channels, 1, 1, y);
    } else {
      y = act.forward(b, conv(0, channels, 3, stride, x));
      y = conv(1, channels, 3, 1, y);
    }
    if (stride != 1 || x.shape()[1] != channels) x = b("shortcut", ConvLayer{channels, 1, stride}, x);
    return act.forward(b, y + x);
  }
};

struct ResNetModel {
  ResNetOptions o;
  Value forward(Builder& b, Value x) const {
    {
      Builder::Enter enter(b, "resnet");
      x = activation(o.activation).forward(b, b("embedder.embedder", ConvLayer{o.stem, 7, 2}, x));
      x = MaxPool2d(3, 2, 1).forward(b, x);
      for (size_t i = 0; i < o.widths.size(); ++i)
        for (int64_t k = 0; k < o.depths[i]; ++k) {
          int64_t stride = k == 0 && (i > 0 || o.first_halves) ? 2 : 1;
          x = b(fmt::format("encoder.stages.{}.layers.{}", i, k), Residual{o, o.widths[i], stride}, x);
        }
    }
    return b("classifier.1", Linear(o.classes), Flatten().forward(b, global_avg_pool(x)));
  }
  std::string describe() const { return fmt::format("ResNet({} stages, {} classes)", o.widths.size(), o.classes); }
};

Described read(Config& c, const std::string&) {
  ResNetOptions r{.channels = c.integer("num_channels", 3),
                  .stem = c.integer("embedding_size", 64),
                  .classes = labels_of(c),
                  .widths = c.integers("hidden_sizes", {256, 512, 1024, 2048}),
                  .depths = c.integers("depths", {3, 4, 6, 3}),
                  .activation = activation_of(c, "hidden_act", "relu"),
                  .bottleneck = c.choice("layer_type", "bottleneck", {"basic", "bottleneck"}) == "bottleneck",
                  .first_halves = c.flag("downsample_in_first_stage", false),
                  .early = c.flag("downsample_in_bottleneck", false)};
  if (r.depths.size() != r.widths.size())
    c.fail("depths", fmt::format("expected {} numbers, as many as hidden_sizes has", r.widths.size()));
  int64_t blocks = 0;
  for (size_t i = 0; i < r.widths.size(); ++i) {
    blocks += r.depths[i];
    if (r.bottleneck && r.widths[i] % 4 != 0) c.fail("hidden_sizes", "expected multiples of 4");
    if (blocks > 10'000) c.fail("depths", "expected at most 10000 blocks");
  }
  for (const char* key : {"out_features", "out_indices", "stage_names"}) c.ignore(key);  // of backbones
  c.expect("problem_type", "single_label_classification", "other problems are not supported");
  Described d;
  d.build = [=, fresh = c.new_head](const ModelOptions& o, const data::Source& train) {
    expect_images("resnet", o, train);
    expect_channels(o, train, r.channels);
    ResNetOptions own = r;
    own.classes = classes_for(fresh, o, train, r.classes);
    return classification(ResNetModel{own});
  };
  d.synthetic = [=](const ModelOptions&, int64_t samples) {
    return synthetic_classes(r.channels, 224, r.classes, samples);
  };
  d.rename = [](HostTensors& all, const std::string&) {
    add_prefix(all, "resnet.", "embedder.embedder.convolution.weight", {"classifier."});
  };
  d.batch = d.eval_batch = 8;
  return d;
}

}  // namespace

extern const Family resnet_family{.model_type = "resnet",
                                  .doc = "ResNet, image classification",
                                  .architectures = {"ResNetForImageClassification", "ResNetModel"},
                                  .read = read};

}  // namespace tutti::hf
