// Vision transformer (Dosovitskiy et al., "An image is worth 16x16 words", 2021): patches of an image as tokens of a
// pre-norm encoder, with torchvision's parameter names.
#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/concat.h"
#include "graph/ops/transpose.h"
#include "nn/attention.h"
#include "nn/norms.h"
#include "train/task/images.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

struct VitOptions {
  int64_t side, patch, width, layers, heads;  ///< side: side of synthetic images
  double dropout = 0;
};

struct Block {
  const VitOptions& o;
  Value forward(Builder& b, Value x) const {
    Value y = b("self_attention", MultiheadAttention(o.heads), b("ln_1", LayerNorm(1e-6), x));
    x = x + b("dropout", Dropout(o.dropout), y);
    Linear::Options init{.init = Scheme::xavier_uniform};
    Sequential mlp{Linear(4 * o.width, init), Gelu(), Dropout(o.dropout), Linear(o.width, init), Dropout(o.dropout)};
    return x + b("mlp", mlp, b("ln_2", LayerNorm(1e-6), x));
  }
};

struct Encoder {
  const VitOptions& o;
  Value forward(Builder& b, Value x) const {
    x = x + b.parameter("pos_embedding", {1, x.shape()[1], o.width}, {Init::normal, 0, 0.02});
    x = b("dropout", Dropout(o.dropout), x);
    for (int64_t i = 0; i < o.layers; ++i) x = b(fmt::format("layers.encoder_layer_{}", i), Block{o}, x);
    return b("ln", LayerNorm(1e-6), squeeze(narrow(x, 1, 0, 1), {1}));  // only the class token is used
  }
};

struct Vit {
  VitOptions o;
  int64_t classes;
  Value forward(Builder& b, Value x) const {
    x = b("conv_proj", Conv2d(o.width, o.patch, {.stride = o.patch}), x);
    x = transpose(flatten(x, 2), {0, 2, 1});  // [N, patches, width]
    Value token = broadcast(b.parameter("class_token", {1, 1, o.width}, {}), {x.shape()[0], 1, o.width});
    x = b("encoder", Encoder{o}, concat({token, x}, 1));
    return b("heads.head", Linear(classes, {.init = Scheme::xavier_uniform}), x);
  }
  std::string describe() const {
    return fmt::format("Vit({} layers, {} heads, width {}, patches of {}x{}, {} classes)", o.layers, o.heads, o.width,
                       o.patch, o.patch, classes);
  }
};

VitOptions options_of(const ModelOptions& o) {
  VitOptions v{.side = 32, .patch = 4, .width = 192, .layers = 6, .heads = 3};
  if (o.size == "b16") v = {.side = 224, .patch = 16, .width = 768, .layers = 12, .heads = 12};
  if (o.size == "tiny") v = {.side = 16, .patch = 4, .width = 16, .layers = 2, .heads = 2};
  v.dropout = o.net.dropout;
  return v;
}

Task task(const ModelOptions& o, const data::Source& train) {
  ImageClasses data = image_classes("vit", o, train);
  VitOptions v = options_of(o);
  int64_t height = data.image[1], width = data.image[2];
  if (height % v.patch != 0 || width % v.patch != 0)
    throw invalid(fmt::format("vit splits images into patches of {}x{}, but {} has images of {}x{}", v.patch, v.patch,
                              o.data, height, width),
                  fmt::format("use images whose sides are multiples of {}, or another size of vit", v.patch));
  return classification(Vit{.o = v, .classes = data.classes});
}

}  // namespace

extern const ModelDef vit_model{
    .name = "vit",
    .doc = "a vision transformer: the patches of an image are its tokens",
    .sizes = {{.name = "cifar",
               .doc = "6 layers, 3 heads, width 192, patches of 4x4, for images of 32x32",
               .batch = 32,
               .eval_batch = 64,
               .lr = 5e-4},
              {.name = "b16",
               .doc = "ViT-B/16: 12 layers, 12 heads, width 768, for images of 224x224",
               .batch = 4,
               .eval_batch = 4,
               .lr = 3e-4},
              {.name = "tiny", .doc = "2 layers, 2 heads, width 16, for images of 16x16", .batch = 4, .eval_batch = 4}},
    .build = task,
    .synthetic = [](const ModelOptions& o, int64_t samples) { return synthetic_images(options_of(o).side, samples); },
    .optimizer = "adamw",
    .takes = {"dropout"}};

}  // namespace tutti
