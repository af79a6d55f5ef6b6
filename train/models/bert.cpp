// BERT (Devlin et al., 2019): an encoder that predicts masked tokens; Hugging Face's parameter names.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/attention.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/floor.h"
#include "graph/ops/gelu.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/transpose.h"
#include "graph/ops/uniform.h"
#include "nn/modules.h"
#include "nn/norms.h"
#include "nn/sequences.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

struct BertOptions {
  int64_t vocabulary, context, layers, heads, width;
  double dropout = 0;
};

const Init small = {Init::normal, 0, 0.02};
LayerNorm norm() { return LayerNorm(1e-12); }

/// A linear layer, then dropout, the residual and a normalisation.
struct Output {
  const BertOptions& o;
  Value forward(Builder& b, Value y, Value x) const {
    return b("LayerNorm", norm(), x + b("dropout", Dropout(o.dropout), b("dense", Linear(o.width), y)));
  }
};

struct SelfAttention {
  const BertOptions& o;
  Value forward(Builder& b, Value x) const {
    int64_t n = x.shape()[0], t = x.shape()[1];
    auto heads = [&](const char* name) {
      return transpose(reshape(b(name, Linear(o.width), x), {n, t, o.heads, o.width / o.heads}), {0, 2, 1, 3});
    };
    Value y =
        attention(heads("query"), heads("key"), heads("value"),
                  {.dropout = b.training() ? o.dropout : 0, .seed = b.seed(), .step = b.step(), .stream = b.stream()});
    return reshape(transpose(y, {0, 2, 1, 3}), {n, t, o.width});
  }
};

struct Attention {
  const BertOptions& o;
  Value forward(Builder& b, Value x) const { return b("output", Output{o}, b("self", SelfAttention{o}, x), x); }
};

struct Intermediate {
  const BertOptions& o;
  Value forward(Builder& b, Value x) const { return gelu(b("dense", Linear(4 * o.width), x)); }
};

struct Block {
  const BertOptions& o;
  Value forward(Builder& b, Value x) const {
    x = b("attention", Attention{o}, x);
    return b("output", Output{o}, b("intermediate", Intermediate{o}, x), x);
  }
};

/// The [MASK] token is the one after the vocabulary.
Weight word_embeddings(Builder& b, const BertOptions& o) {
  Builder::Enter word(b, "word_embeddings");
  return b.weight("weight", {o.vocabulary + 1, o.width}, small, true);
}

struct Embeddings {
  const BertOptions& o;
  Value forward(Builder& b, Value tokens) const {
    Graph& g = b.graph();
    Value positions = arange(g, 0, static_cast<double>(tokens.shape()[1]));
    Value first = broadcast(g.full(DType::i32, 0), {1});  // one segment: all tokens have type 0
    Value x = word_embeddings(b, o).rows(tokens) +
              b("position_embeddings", Embedding(o.context, o.width, small), positions) +
              b("token_type_embeddings", Embedding(2, o.width, small), first);
    return b("dropout", Dropout(o.dropout), b("LayerNorm", norm(), x));
  }
};

struct Encoder {
  const BertOptions& o;
  Value forward(Builder& b, Value x) const {
    for (int64_t i = 0; i < o.layers; ++i) x = b(fmt::format("layer.{}", i), Block{o}, x);
    return x;
  }
};

/// Logits [N, T, V] of the token at every position.
struct Bert {
  BertOptions o;
  Value forward(Builder& b, Value tokens) const {
    int64_t n = tokens.shape()[0], t = tokens.shape()[1];
    if (t > o.context)
      throw invalid(fmt::format("the samples have {} tokens, but the model has only {} positions", t, o.context),
                    option_text("context", o.context));
    Value x;
    Weight w;
    {
      Builder::Enter bert(b, "bert");
      x = b("encoder", Encoder{o}, b("embeddings", Embeddings{o}, tokens));
      Builder::Enter embeddings(b, "embeddings");
      w = word_embeddings(b, o);
    }
    Builder::Enter head(b, "cls.predictions");
    {
      Builder::Enter transform(b, "transform");
      x = b("LayerNorm", norm(), gelu(b("dense", Linear(o.width), x)));
    }
    Value y = w.product(reshape(x, {n * t, o.width})) + b.parameter("bias", {o.vocabulary + 1}, {});
    return reshape(y, {n, t, o.vocabulary + 1});
  }
};

struct Masked {
  Value tokens, labels;  ///< labels: the original token; -100 if the position is not predicted
};

/// BERT's masking: 15 % of the tokens are predicted; of these, 80 % are masked, 10 % are replaced by a random token and
/// 10 % are unchanged. Evaluation masks the same positions in every batch.
Masked mask(Builder& b, Value tokens, int64_t vocabulary) {
  Graph& g = b.graph();
  Graph::Scope scope(g, "mask");
  Value seed = b.training() ? b.seed() : broadcast(g.full(DType::u32, 0), {2});
  Value step = b.training() ? b.step() : g.full(DType::i32, 0);
  Value u = random_uniform(seed, step, tokens.shape(), stream_of("mask"));
  Value any = random_uniform(seed, step, tokens.shape(), stream_of("any token"));
  any = minimum(cast(floor(any * static_cast<double>(vocabulary)), DType::i32), static_cast<double>(vocabulary - 1));
  Value changed =
      select(u < 0.8 * 0.15, tokens.like(static_cast<double>(vocabulary)), select(u < 0.9 * 0.15, any, tokens));
  return {changed, select(u < 0.15, tokens, tokens.like(-100))};
}

BertOptions options_of(const ModelOptions& o) {
  BertOptions m{.vocabulary = 65, .context = 128, .layers = 4, .heads = 4, .width = 256};
  if (o.size == "tiny") m = {.vocabulary = 11, .context = 6, .layers = 2, .heads = 2, .width = 16};
  if (o.size == "base") m = {.vocabulary = 30522, .context = 512, .layers = 12, .heads = 12, .width = 768};
  if (o.context > 0) m.context = o.context;
  m.dropout = o.net.dropout;
  return m;
}

/// The cross entropy of the masked tokens; a column "labels" replaces random masking.
Task task(const ModelOptions& o, const data::Source& train) {
  BertOptions m = options_of(o);
  if (int64_t classes = train.column("tokens").classes; o.size != "base" && classes > 0) m.vocabulary = classes;
  bool labelled = std::ranges::any_of(train.columns(), [](const data::Column& c) { return c.name == "labels"; });
  if (labelled) m.vocabulary -= 1;  // the data is already masked
  return Task(
      [=](Builder& b, const Batch& x) {
        Value tokens = x["tokens"];
        bool masks = x.has("labels");
        x.class_ids("tokens", m.vocabulary + masks);
        Masked masked = masks ? Masked{tokens, x["labels"]} : mask(b, tokens, m.vocabulary);
        Value y = b.output(Bert{m}.forward(b, masked.tokens));
        Shape rows = {num_elements(tokens.shape())};
        Value labels = reshape(ignore_padding(masked.labels, x), rows);
        Outcome out = scored_classes(reshape(y, {rows[0], m.vocabulary + 1}), labels);
        out.weight = maximum(out.weight, 1);  // a small batch may have no masked token
        out.output = y;
        return out;
      },
      fmt::format("Bert({} layers, {} heads, width {}, context {}, vocabulary {})", m.layers, m.heads, m.width,
                  m.context, m.vocabulary));
}

std::vector<data::Column> drawn(const ModelOptions&, const data::Source& train) {
  return {{.name = "labels", .type = train.column("tokens").type}};
}

}  // namespace

extern const ModelDef bert_model;
const ModelDef bert_model{
    .name = "bert",
    .doc = "a BERT encoder that predicts masked tokens of a text",
    .sizes = {{.name = "char",
               .doc = "4 layers, 4 heads, width 256, context 128",
               .batch = 16,
               .eval_batch = 16,
               .lr = 5e-4},
              {.name = "base",
               .doc = "BERT base: 12 layers, 12 heads, width 768, context 512, vocabulary 30522",
               .batch = 1,
               .eval_batch = 1,
               .lr = 1e-4},
              {.name = "tiny", .doc = "2 layers, 2 heads, width 16, context 6", .batch = 2, .eval_batch = 2}},
    .build = task,
    .synthetic =
        [](const ModelOptions& o, int64_t samples) {
          BertOptions m = options_of(o);
          return fmt::format("synthetic-text:{}:{}", m.vocabulary, std::min<int64_t>(samples, 512) * m.context);
        },
    .optimizer = "adamw",
    .takes = {"dropout"},
    .context = [](const ModelOptions& o) { return options_of(o).context; },
    .drawn = drawn};

}  // namespace tutti
