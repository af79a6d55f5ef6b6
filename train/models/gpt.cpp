// GPT-2 (Radford et al., 2019): a decoder of pre-norm blocks with tied embeddings; Hugging Face's parameter names and
// shapes (projection weights are [inputs, outputs]).
#include <fmt/format.h>

#include <cmath>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/attention.h"
#include "graph/ops/gelu.h"
#include "graph/ops/matmul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/transpose.h"
#include "nn/attention.h"
#include "nn/norms.h"
#include "nn/sequences.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

struct GptOptions {
  int64_t vocabulary, context, layers, heads, width;
  double dropout = 0;
};

/// x W + b with W [inputs, outputs], initialized with N(0, scale).
struct Projection {
  int64_t features;
  double scale = 0.02;
  Value forward(Builder& b, Value x) const {
    int64_t inputs = x.shape().back();
    Value w = b.parameter("weight", {inputs, features}, {Init::normal, 0, scale});
    Shape y = x.shape();
    y.back() = features;
    return reshape(matmul(reshape(x, {-1, inputs}), w) + b.parameter("bias", {features}, {}), y);
  }
};

struct Attention {
  const GptOptions& o;
  Value forward(Builder& b, Value x) const {
    int64_t n = x.shape()[0], t = x.shape()[1], head = o.width / o.heads;
    Value qkv = b("c_attn", Projection{3 * o.width}, x);
    auto heads = [&](Value part) { return transpose(reshape(part, {n, t, o.heads, head}), {0, 2, 1, 3}); };
    Values parts = split(qkv, o.width, 2);
    Value y = causal_attention(
        b, heads(parts[0]), heads(parts[1]), heads(parts[2]),
        {.dropout = b.training() ? o.dropout : 0, .seed = b.seed(), .step = b.step(), .stream = b.stream()});
    y = reshape(transpose(y, {0, 2, 1, 3}), {n, t, o.width});
    return b("c_proj", Projection{o.width, 0.02 / std::sqrt(2.0 * static_cast<double>(o.layers))}, y);
  }
};

struct Mlp {
  const GptOptions& o;
  Value forward(Builder& b, Value x) const {
    x = gelu(b("c_fc", Projection{4 * o.width}, x), "tanh");
    return b("c_proj", Projection{o.width, 0.02 / std::sqrt(2.0 * static_cast<double>(o.layers))}, x);
  }
};

struct Block {
  const GptOptions& o;
  Value forward(Builder& b, Value x) const {
    x = x + dropout(b, "resid_1", b("attn", Attention{o}, b("ln_1", LayerNorm(), x)));
    return x + dropout(b, "resid_2", b("mlp", Mlp{o}, b("ln_2", LayerNorm(), x)));
  }
  Value dropout(Builder& b, const char* name, Value x) const { return b(name, Dropout(o.dropout), x); }
};

struct Gpt {
  GptOptions o;
  Value forward(Builder& b, Value tokens) const {
    int64_t n = tokens.shape()[0], t = tokens.shape()[1];
    if (t > o.context)
      throw invalid(fmt::format("the samples have {} tokens, but the model has only {} positions", t, o.context),
                    option_text("context", o.context));
    Builder::Enter enter(b, "transformer");
    Weight wte;
    {
      Builder::Enter in(b, "wte");
      wte = b.weight("weight", {o.vocabulary, o.width}, {Init::normal, 0, 0.02}, true);
    }
    Value x = wte.rows(tokens) + b("wpe", Embedding(o.context, o.width, {Init::normal, 0, 0.02}), b.positions(t));
    x = b("drop", Dropout(o.dropout), x);
    for (int64_t i = 0; i < o.layers; ++i) x = b(fmt::format("h.{}", i), Block{o}, x);
    x = b.last_token(x);
    t = x.shape()[1];
    x = reshape(b("ln_f", LayerNorm(), x), {n * t, o.width});
    return reshape(wte.product(x), {n, t, o.vocabulary});  // tied: the embedding matrix is the output layer too
  }
  std::string describe() const {
    return fmt::format("Gpt({} layers, {} heads, width {}, context {}, vocabulary {})", o.layers, o.heads, o.width,
                       o.context, o.vocabulary);
  }
};

GptOptions options_of(const ModelOptions& o) {
  GptOptions g{.vocabulary = 65, .context = 256, .layers = 6, .heads = 6, .width = 384};
  if (o.size == "nano") g = {.vocabulary = 65, .context = 64, .layers = 3, .heads = 3, .width = 48};
  if (o.size == "tiny") g = {.vocabulary = 11, .context = 8, .layers = 2, .heads = 2, .width = 16};
  if (o.size == "gpt2") g = {.vocabulary = 50257, .context = 1024, .layers = 12, .heads = 12, .width = 768};
  if (o.context > 0) g.context = o.context;
  g.dropout = o.net.dropout;
  return g;
}

Task task(const ModelOptions& o, const data::Source& train) {
  GptOptions g = options_of(o);
  if (int64_t classes = train.column("tokens").classes; o.size != "gpt2" && classes > 0) g.vocabulary = classes;
  return language_model(Gpt{g});
}

}  // namespace

extern const ModelDef gpt_model;
const ModelDef gpt_model{
    .name = "gpt",
    .doc = "a GPT-2 decoder with tied embeddings, on text",
    .sizes = {{.name = "char", .doc = "6 layers, 6 heads, width 384, context 256", .batch = 8, .eval_batch = 8},
              {.name = "nano", .doc = "3 layers, 3 heads, width 48, context 64", .batch = 16, .eval_batch = 16},
              {.name = "gpt2",
               .doc = "12 layers, 12 heads, width 768, context 1024",
               .batch = 1,
               .eval_batch = 1,
               .lr = 3e-4},
              {.name = "tiny", .doc = "2 layers, 2 heads, width 16, context 8", .batch = 2, .eval_batch = 2}},
    .build = task,
    .synthetic =
        [](const ModelOptions& o, int64_t samples) {
          GptOptions g = options_of(o);
          return fmt::format("synthetic-text:{}:{}", g.vocabulary, std::min<int64_t>(samples, 512) * g.context);
        },
    .optimizer = "adamw",
    .takes = {"dropout"},
    .context = [](const ModelOptions& o) { return options_of(o).context; }};

}  // namespace tutti
