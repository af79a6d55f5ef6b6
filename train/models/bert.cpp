// BERT (Devlin et al., 2019): an encoder that predicts masked tokens.
#include <fmt/format.h>

#include <algorithm>

#include "train/task/language_models.h"
#include "train/task/masked_language.h"

namespace tutti {
namespace {

using nn::BertOptions;

BertOptions options_of(const ModelOptions& o) {
  BertOptions m{.vocabulary = 65, .positions = 128, .layers = 4, .heads = 4, .width = 256};
  if (o.size == "tiny") m = {.vocabulary = 11, .positions = 6, .layers = 2, .heads = 2, .width = 16};
  if (o.size == "base") m = {.vocabulary = 30522, .positions = 512, .layers = 12, .heads = 12, .width = 768};
  if (o.context > 0) m.positions = o.context;
  m.dropout = m.attention_dropout = o.net.dropout;
  return m;
}

Task task(const ModelOptions& o, const data::Source& train) {
  BertOptions m = bert_options(o, train);
  return masked_language(m, {.mask = m.vocabulary - 1, .random = m.vocabulary - 1});
}

std::vector<data::Column> drawn(const ModelOptions&, const data::Source& train) {
  return {{.name = "labels", .type = train.column("tokens").type}};
}

}  // namespace

/// The [MASK] token is the one after the vocabulary.
BertOptions bert_options(const ModelOptions& o, const data::Source& train) {
  BertOptions m = options_of(o);
  if (int64_t classes = train.column("tokens").classes; o.size != "base" && classes > 0) m.vocabulary = classes;
  bool labelled = std::ranges::any_of(train.columns(), [](const data::Column& c) { return c.name == "labels"; });
  if (!labelled) m.vocabulary += 1;  // else the data is already masked
  return m;
}

extern const ModelDef bert_model{
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
          return fmt::format("synthetic-text:{}:{}", m.vocabulary, std::min<int64_t>(samples, 512) * m.positions);
        },
    .optimizer = "adamw",
    .takes = {"dropout"},
    .context = [](const ModelOptions& o) { return options_of(o).positions; },
    .drawn = drawn};

}  // namespace tutti
