#include "train/task/masked_language.h"

#include "graph/functions.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/floor.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/uniform.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

struct Masked {
  Value tokens, labels;  ///< labels: the original token; -100 if the position is not predicted
};

/// BERT's masking: 15 % of the tokens are predicted; of these, 80 % are masked, 10 % are replaced by a random token and
/// 10 % are unchanged. Evaluation masks the same positions in every batch.
Masked mask(nn::Builder& b, Value tokens, const MaskedLanguageOptions& o) {
  Graph& g = b.graph();
  Graph::Scope scope(g, "mask");
  Value seed = b.training() ? b.seed() : broadcast(g.full(DType::u32, 0), {2});
  Value step = b.training() ? b.step() : g.full(DType::i32, 0);
  Value u = random_uniform(seed, step, tokens.shape(), nn::stream_of("mask"));
  Value any = random_uniform(seed, step, tokens.shape(), nn::stream_of("any token"));
  any = minimum(cast(floor(any * static_cast<double>(o.random)), DType::i32), static_cast<double>(o.random - 1));
  Value changed = select(u < 0.8 * 0.15, tokens.like(static_cast<double>(o.mask)), select(u < 0.9 * 0.15, any, tokens));
  return {changed, select(u < 0.15, tokens, tokens.like(-100))};
}

}  // namespace

nn::BertInputs bert_inputs(const Batch& x, Value tokens, const nn::BertOptions& bert) {
  nn::BertInputs in{tokens};
  if (x.has("token_types")) in.types = x.class_ids("token_types", bert.types);
  if (x.has("attention_mask")) in.mask = x["attention_mask"];
  return in;
}

Task masked_language(const nn::BertOptions& bert, const MaskedLanguageOptions& options, bool scored) {
  return Task(
      [=](nn::Builder& b, const Batch& x) {
        const bool labelled = x.has("labels"), given = labelled || !scored;
        Value tokens = x.class_ids("tokens", given ? bert.vocabulary : options.random);
        Masked masked = given ? Masked{tokens, labelled ? x["labels"] : tokens} : mask(b, tokens, options);
        Value y = nn::Bert(bert).forward(b, bert_inputs(x, masked.tokens, bert));
        y = b.output(nn::BertPredictions{bert}.forward(b, y));
        Shape rows = {num_elements(tokens.shape())};
        Value labels = reshape(ignore_padding(masked.labels, x), rows);
        Outcome out = scored_classes(reshape(y, {rows[0], bert.vocabulary}), labels);
        out.weight = maximum(out.weight, 1);  // a small batch may have no masked token
        out.output = y;
        return out;
      },
      nn::Bert(bert).describe());
}

}  // namespace tutti
