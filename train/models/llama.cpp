// Llama (Touvron et al., 2023): pre-norm blocks of RMSNorm, rotary attention with grouped key-value heads and SwiGLU;
// tied embeddings; Hugging Face's parameter names.
#include <fmt/format.h>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/attention.h"
#include "graph/ops/reshape.h"
#include "graph/ops/silu.h"
#include "graph/ops/transpose.h"
#include "nn/attention.h"
#include "nn/modules.h"
#include "nn/norms.h"
#include "nn/sequences.h"
#include "train/io/gguf_llama.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

Linear projection(int64_t features) { return Linear(features, {.bias = false}); }

struct SelfAttention {
  const LlamaFacts& o;
  Value forward(Builder& b, Value x) const {
    int64_t n = x.shape()[0], t = x.shape()[1], size = o.width / o.heads;
    auto heads = [&](const char* name, int64_t count) {
      return transpose(reshape(b(name, projection(count * size), x), {n, t, count, size}), {0, 2, 1, 3});
    };
    RotaryOptions turn{.base = o.rope_base, .positions = b.positions(t)};
    Value q = rotary(heads("q_proj", o.heads), turn), k = rotary(heads("k_proj", o.kv_heads), turn);
    Value y = causal_attention(b, q, k, heads("v_proj", o.kv_heads));
    return b("o_proj", projection(o.width), reshape(transpose(y, {0, 2, 1, 3}), {n, t, o.heads * size}));
  }
};

struct Mlp {
  const LlamaFacts& o;
  Value forward(Builder& b, Value x) const {
    Value gate = silu(b("gate_proj", projection(o.hidden), x));
    return b("down_proj", projection(o.width), gate * b("up_proj", projection(o.hidden), x));
  }
};

struct Block {
  const LlamaFacts& o;
  Value forward(Builder& b, Value x) const {
    x = x + b("self_attn", SelfAttention{o}, b("input_layernorm", RmsNorm(o.eps), x));
    return x + b("mlp", Mlp{o}, b("post_attention_layernorm", RmsNorm(o.eps), x));
  }
};

struct Llama {
  LlamaFacts o;
  Value forward(Builder& b, Value tokens) const {
    Builder::Enter enter(b, "model");
    Embedding embed(o.vocabulary, o.width, {Init::normal, 0, 0.02});
    Value x = b("embed_tokens", embed, tokens);
    for (int64_t i = 0; i < o.layers; ++i) x = b(fmt::format("layers.{}", i), Block{o}, x);
    x = b.last_token(x);
    int64_t n = x.shape()[0], t = x.shape()[1];
    x = reshape(b("norm", RmsNorm(o.eps), x), {n * t, o.width});
    Builder::Enter tied(b, "embed_tokens");
    Weight w = b.weight("weight", {o.vocabulary, o.width}, {Init::normal, 0, 0.02}, true);
    return reshape(w.product(x), {n, t, o.vocabulary});
  }
  std::string describe() const {
    return fmt::format("Llama({} layers, width {}, {} heads, {} key-value heads, vocabulary {})", o.layers, o.width,
                       o.heads, o.kv_heads, o.vocabulary);
  }
};

LlamaFacts options_of(const ModelOptions& o) {
  LlamaFacts l{.vocabulary = 65, .context = 256, .layers = 6, .width = 288, .hidden = 768, .heads = 6, .kv_heads = 2};
  if (o.size == "tiny")
    l = {.vocabulary = 11, .context = 6, .layers = 2, .width = 16, .hidden = 24, .heads = 4, .kv_heads = 2};
  if (o.size == "smollm2")
    l = {.vocabulary = 49152,
         .context = 512,
         .layers = 30,
         .width = 576,
         .hidden = 1536,
         .heads = 9,
         .kv_heads = 3,
         .rope_base = 100000};
  if (o.weights.ends_with(".gguf")) {
    l = llama_facts(Gguf(o.weights));
    l.context = std::min<int64_t>(l.context, 512);
  }
  if (o.context > 0) l.context = o.context;
  return l;
}

Task task(const ModelOptions& o, const data::Source& train) {
  LlamaFacts l = options_of(o);
  int64_t classes = train.column("tokens").classes;
  if (o.weights.ends_with(".gguf") && classes > l.vocabulary)
    throw invalid(fmt::format("{} has {} tokens, but {} has {}", o.data, classes, o.weights, l.vocabulary),
                  option_text("tokenizer", "gguf:" + o.weights));
  if (o.size != "smollm2" && o.weights.empty() && classes > 0) l.vocabulary = classes;
  return language_model(Llama{l});
}

}  // namespace

extern const ModelDef llama_model;
const ModelDef llama_model{
    .name = "llama",
    .doc = "a Llama decoder: RMSNorm, rotary positions, grouped key-value heads, SwiGLU, tied embeddings",
    .sizes = {{.name = "char",
               .doc = "6 layers, width 288, 6 heads, 2 key-value heads, context 256",
               .batch = 8,
               .eval_batch = 8,
               .lr = 5e-4},
              {.name = "smollm2",
               .doc = "SmolLM2-135M: 30 layers, width 576, 9 heads, 3 key-value heads, context 512",
               .batch = 1,
               .eval_batch = 1,
               .lr = 5e-4},
              {.name = "tiny", .doc = "2 layers, width 16, 4 heads, 2 key-value heads", .batch = 2, .eval_batch = 2}},
    .build = task,
    .synthetic =
        [](const ModelOptions& o, int64_t samples) {
          LlamaFacts l = options_of(o);
          return fmt::format("synthetic-text:{}:{}", l.vocabulary, std::min<int64_t>(samples, 512) * l.context);
        },
    .optimizer = "adamw",
    .context = [](const ModelOptions& o) { return options_of(o).context; }};

}  // namespace tutti
