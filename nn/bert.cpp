#include "nn/bert.h"

#include <fmt/format.h>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/attention.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/equal.h"
#include "graph/ops/logical_not.h"
#include "graph/ops/reshape.h"
#include "graph/ops/tanh.h"
#include "graph/ops/transpose.h"
#include "nn/modules.h"
#include "nn/norms.h"
#include "nn/sequences.h"

namespace tutti::nn {
namespace {

const Init small = {Init::normal, 0, 0.02};

/// A linear layer, then dropout, the residual and a normalization.
struct Output {
  const BertOptions& o;
  Value forward(Builder& b, Value y, Value x) const {
    return b("LayerNorm", LayerNorm(o.eps), x + b("dropout", Dropout(o.dropout), b("dense", Linear(o.width), y)));
  }
};

struct SelfAttention {
  const BertOptions& o;
  Value mask;
  Value forward(Builder& b, Value x) const {
    int64_t n = x.shape()[0], t = x.shape()[1];
    auto heads = [&](const char* name) {
      return transpose(reshape(b(name, Linear(o.width), x), {n, t, o.heads, o.width / o.heads}), {0, 2, 1, 3});
    };
    Value y = attention(heads("query"), heads("key"), heads("value"),
                        {.mask = mask,
                         .dropout = b.training() ? o.attention_dropout : 0,
                         .seed = b.seed(),
                         .step = b.step(),
                         .stream = b.stream()});
    return reshape(transpose(y, {0, 2, 1, 3}), {n, t, o.width});
  }
};

struct Attention {
  const BertOptions& o;
  Value mask;
  Value forward(Builder& b, Value x) const { return b("output", Output{o}, b("self", SelfAttention{o, mask}, x), x); }
};

struct Intermediate {
  const BertOptions& o;
  Value forward(Builder& b, Value x) const {
    return activation(o.activation).forward(b, b("dense", Linear(o.hidden), x));
  }
};

struct Block {
  const BertOptions& o;
  Value mask;
  Value forward(Builder& b, Value x) const {
    x = b("attention", Attention{o, mask}, x);
    return b("output", Output{o}, b("intermediate", Intermediate{o}, x), x);
  }
};

Weight word_embeddings(Builder& b, const BertOptions& o) {
  Builder::Enter word(b, "word_embeddings");
  return b.weight("weight", {o.vocabulary, o.width}, small, true);
}

struct Embeddings {
  const BertOptions& o;
  Value types;
  Value forward(Builder& b, Value tokens) const {
    Graph& g = b.graph();
    Value positions = arange(g, 0, static_cast<double>(tokens.shape()[1]));
    Value kinds = types ? types : broadcast(g.full(DType::i32, 0), {1});  // one text: all tokens have type 0
    Value x = word_embeddings(b, o).rows(tokens) +
              b("position_embeddings", Embedding(o.positions, o.width, small), positions) +
              b("token_type_embeddings", Embedding(o.types, o.width, small), kinds);
    return b("dropout", Dropout(o.dropout), b("LayerNorm", LayerNorm(o.eps), x));
  }
};

struct Encoder {
  const BertOptions& o;
  Value mask;
  Value forward(Builder& b, Value x) const {
    for (int64_t i = 0; i < o.layers; ++i) x = b(fmt::format("layer.{}", i), Block{o, mask}, x);
    return x;
  }
};

BertOptions complete(BertOptions o) {
  if (o.hidden == 0) o.hidden = 4 * o.width;
  return o;
}

}  // namespace

Bert::Bert(BertOptions options) : o_(complete(std::move(options))) {
  if (o_.heads < 1 || o_.width % o_.heads != 0)
    throw invalid(fmt::format("Bert: {} heads do not divide the width {}", o_.heads, o_.width));
}

Value Bert::forward(Builder& b, const BertInputs& x) const {
  int64_t n = x.tokens.shape()[0], t = x.tokens.shape()[1];
  if (t > o_.positions)
    throw invalid(fmt::format("the samples have {} tokens, but the model has only {} positions", t, o_.positions),
                  option_text("context", o_.positions));
  Value mask = x.mask ? reshape(logical_not(equal(x.mask, x.mask.like(0))), {n, 1, 1, t}) : Value();
  Builder::Enter bert(b, "bert");
  return b("encoder", Encoder{o_, mask}, b("embeddings", Embeddings{o_, x.types}, x.tokens));
}

std::string Bert::describe() const {
  return fmt::format("Bert({} layers, {} heads, width {}, context {}, vocabulary {})", o_.layers, o_.heads, o_.width,
                     o_.positions, o_.vocabulary);
}

Value BertPooler::forward(Builder& b, Value x) const {
  Builder::Enter pooler(b, "bert.pooler");
  int64_t n = x.shape()[0], width = x.shape()[2];
  return tanh(b("dense", Linear(width), reshape(narrow(x, 1, 0, 1), {n, width})));
}

Value BertPredictions::forward(Builder& b, Value x) const {
  int64_t n = x.shape()[0], t = x.shape()[1];
  Weight table;
  if (o.tied) {
    Builder::Enter embeddings(b, "bert.embeddings");
    table = word_embeddings(b, o);
  }
  Builder::Enter head(b, "cls.predictions");
  {
    Builder::Enter transform(b, "transform");
    x = activation(o.activation).forward(b, b("dense", Linear(o.width), x));
    x = b("LayerNorm", LayerNorm(o.eps), x);
  }
  if (!o.tied) {
    Builder::Enter decoder(b, "decoder");
    table = b.weight("weight", {o.vocabulary, o.width}, small);
  }
  Value y = table.product(reshape(x, {n * t, o.width})) + b.parameter("bias", {o.vocabulary}, {});
  return reshape(y, {n, t, o.vocabulary});
}

}  // namespace tutti::nn
