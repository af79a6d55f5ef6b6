// GPT-2 (Radford et al., 2019): a decoder of pre-norm blocks with tied embeddings.
#include <fmt/format.h>

#include <algorithm>

#include "train/task/language_models.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using nn::Gpt2Options;

Gpt2Options options_of(const ModelOptions& o) {
  Gpt2Options g{.vocabulary = 65, .positions = 256, .layers = 6, .heads = 6, .width = 384};
  if (o.size == "nano") g = {.vocabulary = 65, .positions = 64, .layers = 3, .heads = 3, .width = 48};
  if (o.size == "tiny") g = {.vocabulary = 11, .positions = 8, .layers = 2, .heads = 2, .width = 16};
  if (o.size == "gpt2") g = {.vocabulary = 50257, .positions = 1024, .layers = 12, .heads = 12, .width = 768};
  if (o.context > 0) g.positions = o.context;
  g.embedding_dropout = g.attention_dropout = g.residual_dropout = o.net.dropout;
  return g;
}

Task task(const ModelOptions& o, const data::Source& train) { return language_model(nn::Gpt2(gpt_options(o, train))); }

}  // namespace

Gpt2Options gpt_options(const ModelOptions& o, const data::Source& train) {
  Gpt2Options g = options_of(o);
  if (int64_t classes = train.column("tokens").classes; o.size != "gpt2" && classes > 0) g.vocabulary = classes;
  return g;
}

extern const ModelDef gpt_model{
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
          Gpt2Options g = options_of(o);
          return fmt::format("synthetic-text:{}:{}", g.vocabulary, std::min<int64_t>(samples, 512) * g.positions);
        },
    .optimizer = "adamw",
    .takes = {"dropout"},
    .context = [](const ModelOptions& o) { return options_of(o).positions; }};

}  // namespace tutti
