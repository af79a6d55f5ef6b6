#include "nn/decoder.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/add.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/rms_norm.h"
#include "graph/ops/tanh.h"
#include "graph/ops/transpose.h"
#include "nn/attention.h"
#include "nn/modules.h"
#include "nn/norms.h"
#include "nn/sequences.h"

namespace tutti::nn {
namespace {

const Init small = {Init::normal, 0, 0.02};

struct Norm {
  const DecoderOptions& o;
  Value forward(Builder& b, Value x) const {
    if (!o.unit_norms) return RmsNorm(o.eps).forward(b, x);
    int64_t n = x.shape().back();
    return rms_norm(x, {n}, b.wide_parameter("weight", {n}, {}) + 1.0, o.eps);
  }
};

struct SelfAttention {
  const DecoderOptions& o;
  bool sliding;
  Value forward(Builder& b, Value x) const {
    int64_t n = x.shape()[0], t = x.shape()[1];
    auto heads = [&](Value y, int64_t count) { return transpose(reshape(y, {n, t, count, o.head}), {0, 2, 1, 3}); };
    auto linear = [&](const char* name, int64_t features) {
      return b(name, Linear(features, {.bias = o.qkv_bias}), x);
    };
    const int64_t queries = o.heads * o.head, keys = o.kv_heads * o.head;
    Value q, k, v;
    if (o.fused) {
      Value all = linear("qkv_proj", queries + 2 * keys);
      q = narrow(all, 2, 0, queries), k = narrow(all, 2, queries, keys), v = narrow(all, 2, queries + keys, keys);
    } else {
      q = linear("q_proj", queries), k = linear("k_proj", keys), v = linear("v_proj", keys);
    }
    const Rotary& rotary = sliding && o.sliding_rotary ? *o.sliding_rotary : o.rotary;
    auto placed = [&](const char* norm, Value y, int64_t count) {
      y = heads(y, count);
      return rotary.forward(b, o.head_norms ? b(norm, Norm{o}, y) : y);
    };
    AttentionOptions how{
        .dropout = b.training() ? o.attention_dropout : 0, .seed = b.seed(), .step = b.step(), .stream = b.stream()};
    if (o.score_scale > 0) how.scale = o.score_scale;
    Value y = causal_attention(b, placed("q_norm", q, o.heads), placed("k_norm", k, o.kv_heads), heads(v, o.kv_heads),
                               how, {.window = sliding ? o.window : 0, .cap = o.score_cap});
    y = reshape(transpose(y, {0, 2, 1, 3}), {n, t, queries});
    return b("o_proj", Linear(o.width, {.bias = o.output_bias}), y);
  }
};

struct Mlp {
  const DecoderOptions& o;
  Value forward(Builder& b, Value x) const {
    auto linear = [&](const char* name, int64_t features, Value y) {
      return b(name, Linear(features, {.bias = o.mlp_bias}), y);
    };
    Activation act = activation(o.activation);
    if (!o.fused) {
      Value gate = act.forward(b, linear("gate_proj", o.hidden, x));
      return linear("down_proj", o.width, gate * linear("up_proj", o.hidden, x));
    }
    Value both = linear("gate_up_proj", 2 * o.hidden, x);
    return linear("down_proj", o.width,
                  narrow(both, 2, o.hidden, o.hidden) * act.forward(b, narrow(both, 2, 0, o.hidden)));
  }
};

struct Block {
  const DecoderOptions& o;
  bool sliding;
  Value forward(Builder& b, Value x) const {
    auto norm = [&](const char* name, Value y) { return b(name, Norm{o}, y); };
    auto dropout = [&](const char* name, Value y) {
      return o.residual_dropout > 0 ? b(name, Dropout(o.residual_dropout), y) : y;
    };
    Value y = b("self_attn", SelfAttention{o, sliding}, norm("input_layernorm", x));
    if (o.result_norms) y = norm("post_attention_layernorm", y);
    x = x + dropout("resid_attn_dropout", y);
    y = b("mlp", Mlp{o}, norm(o.result_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm", x));
    if (o.result_norms) y = norm("post_feedforward_layernorm", y);
    return x + dropout("resid_mlp_dropout", y);
  }
};

}  // namespace

Decoder::Decoder(DecoderOptions options) : o_(std::move(options)) {
  DecoderOptions& o = o_;
  for (auto [what, size] : {std::pair{"vocabulary", o.vocabulary},
                            {"number of layers", o.layers},
                            {"width", o.width},
                            {"hidden size", o.hidden},
                            {"number of heads", o.heads},
                            {"number of key-value heads", o.kv_heads}})
    if (size < 1) throw invalid(fmt::format("{}: the {} is {}, but must be at least 1", o.name, what, size));
  if (o.head == 0 && o.width % o.heads != 0)
    throw invalid(fmt::format("{}: {} heads do not divide the width {}", o.name, o.heads, o.width));
  if (o.head == 0) o.head = o.width / o.heads;
  if (o.head < 2 || o.head % 2 != 0)
    throw invalid(
        fmt::format("{}: the heads have {} elements, but rotary positions need an even number", o.name, o.head));
  if (o.heads % o.kv_heads != 0)
    throw invalid(fmt::format("{}: {} key-value heads do not divide the {} heads", o.name, o.kv_heads, o.heads));
  if (!o.sliding.empty() && std::ssize(o.sliding) != o.layers)
    throw invalid(fmt::format("{}: {} layers, but {} types of layers", o.name, o.layers, o.sliding.size()));
}

Value Decoder::forward(Builder& b, Value tokens) const {
  const DecoderOptions& o = o_;
  Value x;
  {
    Builder::Enter enter(b, "model");
    x = b("embed_tokens", Embedding(o.vocabulary, o.width, small), tokens);
    if (o.embedding_scale != 1) x = x * o.embedding_scale;
    if (o.embedding_dropout > 0) x = b("embed_dropout", Dropout(o.embedding_dropout), x);
    for (int64_t i = 0; i < o.layers; ++i)
      x = b(fmt::format("layers.{}", i), Block{o, !o.sliding.empty() && o.sliding[static_cast<size_t>(i)]}, x);
    x = b("norm", Norm{o}, b.last_token(x));
  }
  int64_t n = x.shape()[0], t = x.shape()[1];
  Builder::Enter head(b, o.tied ? "model.embed_tokens" : "lm_head");
  Weight w = b.weight("weight", {o.vocabulary, o.width}, small, o.tied);
  Value y = w.product(reshape(x, {n * t, o.width}));
  if (o.logit_cap > 0) y = tanh(y * (1 / o.logit_cap)) * o.logit_cap;
  return reshape(y, {n, t, o.vocabulary});
}

std::string Decoder::describe() const {
  return fmt::format("{}({} layers, width {}, {} heads, {} key-value heads, vocabulary {})", o_.name, o_.layers,
                     o_.width, o_.heads, o_.kv_heads, o_.vocabulary);
}

}  // namespace tutti::nn
