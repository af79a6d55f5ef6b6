// Vision transformer (Dosovitskiy et al., 2021), DeiT without distillation.
#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/attention.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/concat.h"
#include "graph/ops/reshape.h"
#include "graph/ops/transpose.h"
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

struct VitOptions {
  int64_t side, patch, channels, width, hidden, layers, heads, classes;
  std::string activation;
  double eps, dropout, attention_dropout;
  bool bias;
};

struct SelfAttention {
  const VitOptions& o;
  Value forward(Builder& b, Value x) const {
    int64_t n = x.shape()[0], t = x.shape()[1];
    auto heads = [&](const char* name) {
      Value y = b(name, Linear(o.width, {.bias = o.bias}), x);
      return transpose(reshape(y, {n, t, o.heads, o.width / o.heads}), {0, 2, 1, 3});
    };
    Value y = attention(
        heads("query"), heads("key"), heads("value"),
        {.dropout = b.training() ? o.attention_dropout : 0, .seed = b.seed(), .step = b.step(), .stream = b.stream()});
    return reshape(transpose(y, {0, 2, 1, 3}), {n, t, o.width});
  }
};

struct Block {
  const VitOptions& o;
  Value forward(Builder& b, Value x) const {
    auto dense = [&](const std::string& name, int64_t features, Value y) {
      return b(name + ".dense", Linear(features), y);
    };
    auto dropout = [&](const std::string& name, Value y) { return b(name + ".dropout", Dropout(o.dropout), y); };
    Value y = b("attention.attention", SelfAttention{o}, b("layernorm_before", LayerNorm(o.eps), x));
    x = x + dropout("attention.output", dense("attention.output", o.width, y));
    y = activation(o.activation).forward(b, dense("intermediate", o.hidden, b("layernorm_after", LayerNorm(o.eps), x)));
    return x + dropout("output", dense("output", o.width, y));
  }
};

struct Vit {
  VitOptions o;
  Value forward(Builder& b, Value x) const {
    {
      Builder::Enter vit(b, "vit");
      {
        Builder::Enter embeddings(b, "embeddings");
        x = b("patch_embeddings.projection", Conv2d(o.width, o.patch, {.stride = o.patch}), x);
        x = transpose(flatten(x, 2), {0, 2, 1});  // [N, patches, width]
        Value first = b.parameter("cls_token", {1, 1, o.width}, {Init::normal, 0, 0.02});
        x = concat({broadcast(first, {x.shape()[0], 1, o.width}), x}, 1);
        x = x + b.parameter("position_embeddings", {1, x.shape()[1], o.width}, {Init::normal, 0, 0.02});
        x = b("dropout", Dropout(o.dropout), x);
      }
      for (int64_t i = 0; i < o.layers; ++i) x = b(fmt::format("encoder.layer.{}", i), Block{o}, x);
      x = b("layernorm", LayerNorm(o.eps), squeeze(narrow(x, 1, 0, 1), {1}));  // only the class token is used
    }
    return b("classifier", Linear(o.classes), x);
  }
  std::string describe() const {
    return fmt::format("Vit({} layers, {} heads, width {}, patches of {}x{}, {} classes)", o.layers, o.heads, o.width,
                       o.patch, o.patch, o.classes);
  }
};

Described read(Config& c, const std::string&) {
  VitOptions v{.side = c.integer("image_size", 224),
               .patch = c.integer("patch_size", 16),
               .channels = c.integer("num_channels", 3),
               .width = c.integer("hidden_size", 768),
               .hidden = c.integer("intermediate_size", 3072),
               .layers = c.layers("num_hidden_layers", 12),
               .heads = c.integer("num_attention_heads", 12),
               .classes = labels_of(c),
               .activation = activation_of(c, "hidden_act", "gelu"),
               .eps = c.real("layer_norm_eps", 1e-12),
               .dropout = c.probability("hidden_dropout_prob", 0),
               .attention_dropout = c.probability("attention_probs_dropout_prob", 0),
               .bias = c.flag("qkv_bias", true)};
  if (v.width % v.heads != 0)
    c.fail("num_attention_heads", fmt::format("which does not divide hidden_size, {}", v.width));
  if (v.side % v.patch != 0) c.fail("patch_size", fmt::format("which does not divide image_size, {}", v.side));
  for (const char* key : {"encoder_stride", "pooler_output_size", "pooler_act"}) c.ignore(key);  // of other heads
  c.expect("problem_type", "single_label_classification", "other problems are not supported");
  Described d;
  d.build = [=, fresh = c.new_head](const ModelOptions& o, const data::Source& train) {
    expect_image_shape(o, train, {v.channels, v.side, v.side});
    VitOptions own = v;
    own.classes = classes_for(fresh, o, train, v.classes);
    return classification(Vit{own});
  };
  d.synthetic = [=](const ModelOptions&, int64_t samples) {
    return synthetic_classes(v.channels, v.side, v.classes, samples);
  };
  d.rename = [](HostTensors& all, const std::string&) {
    add_prefix(all, "vit.", "embeddings.cls_token", {"classifier."});
    drop(all, {"vit.pooler.*", "vit.embeddings.mask_token"});
  };
  d.batch = d.eval_batch = 8;
  return d;
}

}  // namespace

extern const Family vit_family{.model_type = "vit",
                               .doc = "ViT, image classification",
                               .architectures = {"ViTForImageClassification", "ViTModel"},
                               .read = read};

}  // namespace tutti::hf
