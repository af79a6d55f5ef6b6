#include "nn/gpt2.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/add.h"
#include "graph/ops/attention.h"
#include "graph/ops/matmul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/transpose.h"
#include "nn/attention.h"
#include "nn/modules.h"
#include "nn/norms.h"
#include "nn/sequences.h"

namespace tutti::nn {
namespace {

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
  const Gpt2Options& o;
  int64_t layer;
  Value forward(Builder& b, Value x) const {
    int64_t n = x.shape()[0], t = x.shape()[1], head = o.width / o.heads;
    Value qkv = b("c_attn", Projection{3 * o.width}, x);
    auto heads = [&](Value part) { return transpose(reshape(part, {n, t, o.heads, head}), {0, 2, 1, 3}); };
    Values parts = split(qkv, o.width, 2);
    AttentionOptions how{
        .dropout = b.training() ? o.attention_dropout : 0, .seed = b.seed(), .step = b.step(), .stream = b.stream()};
    if (!o.scaled || o.scaled_by_layer)
      how.scale = (o.scaled ? 1 / std::sqrt(static_cast<double>(head)) : 1) /
                  static_cast<double>(o.scaled_by_layer ? layer + 1 : 1);
    Value y = causal_attention(b, heads(parts[0]), heads(parts[1]), heads(parts[2]), how);
    y = reshape(transpose(y, {0, 2, 1, 3}), {n, t, o.width});
    return b("c_proj", Projection{o.width, 0.02 / std::sqrt(2.0 * static_cast<double>(o.layers))}, y);
  }
};

struct Mlp {
  const Gpt2Options& o;
  Value forward(Builder& b, Value x) const {
    x = activation(o.activation).forward(b, b("c_fc", Projection{o.hidden}, x));
    return b("c_proj", Projection{o.width, 0.02 / std::sqrt(2.0 * static_cast<double>(o.layers))}, x);
  }
};

struct Block {
  const Gpt2Options& o;
  int64_t layer;
  Value forward(Builder& b, Value x) const {
    x = x + dropout(b, "resid_1", b("attn", Attention{o, layer}, b("ln_1", LayerNorm(o.eps), x)));
    return x + dropout(b, "resid_2", b("mlp", Mlp{o}, b("ln_2", LayerNorm(o.eps), x)));
  }
  Value dropout(Builder& b, const char* name, Value x) const { return b(name, Dropout(o.residual_dropout), x); }
};

}  // namespace

Gpt2::Gpt2(Gpt2Options options) : o_(std::move(options)) {
  if (o_.hidden == 0) o_.hidden = 4 * o_.width;
  if (o_.heads < 1 || o_.width % o_.heads != 0)
    throw invalid(fmt::format("Gpt: {} heads do not divide the width {}", o_.heads, o_.width));
}

Value Gpt2::forward(Builder& b, Value tokens) const {
  const Gpt2Options& o = o_;
  int64_t n = tokens.shape()[0], t = tokens.shape()[1];
  if (t > o.positions)
    throw invalid(fmt::format("the samples have {} tokens, but the model has only {} positions", t, o.positions),
                  option_text("context", o.positions));
  Weight head;
  Value x;
  {
    Builder::Enter enter(b, "transformer");
    {
      Builder::Enter in(b, "wte");
      head = b.weight("weight", {o.vocabulary, o.width}, {Init::normal, 0, 0.02}, true);
    }
    x = head.rows(tokens) + b("wpe", Embedding(o.positions, o.width, {Init::normal, 0, 0.02}), b.positions(t));
    x = b("drop", Dropout(o.embedding_dropout), x);
    for (int64_t i = 0; i < o.layers; ++i) x = b(fmt::format("h.{}", i), Block{o, i}, x);
    x = b.last_token(x);
    t = x.shape()[1];
    x = reshape(b("ln_f", LayerNorm(o.eps), x), {n * t, o.width});
    if (o.tied) return reshape(head.product(x), {n, t, o.vocabulary});
  }
  Builder::Enter untied(b, "lm_head");
  head = b.weight("weight", {o.vocabulary, o.width}, {Init::normal, 0, 0.02});
  return reshape(head.product(x), {n, t, o.vocabulary});
}

std::string Gpt2::describe() const {
  return fmt::format("Gpt({} layers, {} heads, width {}, context {}, vocabulary {})", o_.layers, o_.heads, o_.width,
                     o_.positions, o_.vocabulary);
}

}  // namespace tutti::nn
