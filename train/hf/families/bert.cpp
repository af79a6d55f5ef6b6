// BERT (Devlin et al., 2019) and its heads.
#include "nn/bert.h"
#include "graph/functions.h"

#include <fmt/format.h>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "nn/modules.h"
#include "train/hf/contexts.h"
#include "train/hf/family.h"
#include "train/hf/labels.h"
#include "train/io/weight_names.h"
#include "train/task/masked_language.h"
#include "train/task/tasks.h"

namespace tutti::hf {
namespace {

nn::BertOptions options_of(Config& c) {
  nn::BertOptions o;
  o.vocabulary = c.integer("vocab_size", 30522);
  o.positions = c.integer("max_position_embeddings", 512);
  o.width = c.integer("hidden_size", 768);
  o.layers = c.layers("num_hidden_layers", 12);
  o.heads = c.integer("num_attention_heads", 12);
  if (o.width % o.heads != 0)
    c.fail("num_attention_heads", fmt::format("which does not divide hidden_size, {}", o.width));
  o.hidden = c.integer("intermediate_size", 3072);
  o.types = c.integer("type_vocab_size", 2);
  o.activation = activation_of(c, "hidden_act", "gelu");
  o.eps = c.real("layer_norm_eps", 1e-12);
  o.tied = c.flag("tie_word_embeddings", true);
  o.dropout = c.probability("hidden_dropout_prob", 0.1);
  o.attention_dropout = c.probability("attention_probs_dropout_prob", 0.1);
  return o;
}

/// Logits of classes from the pooled first token.
struct Classifier {
  std::string head;
  int64_t classes;
  double dropout;
  Value forward(nn::Builder& b, Value x) const {
    x = nn::BertPooler().forward(b, x);
    return b(head, nn::Linear(classes), b("dropout", nn::Dropout(dropout), x));
  }
};

Described classifier(Config& c, const nn::BertOptions& bert, const Classifier& usual) {
  Described d;
  d.build = [=, fresh = c.new_head](const ModelOptions& o, const data::Source& train) {
    expect_vocabulary(o, train, bert.vocabulary);
    Classifier own = usual;
    own.classes = classes_for(fresh, o, train, usual.classes);
    return Task(
        [=](nn::Builder& b, const Batch& x) {
          Value tokens = x.class_ids("tokens", bert.vocabulary);
          Value y = nn::Bert(bert).forward(b, bert_inputs(x, tokens, bert));
          return classified(b.output(own.forward(b, y)), x);
        },
        nn::Bert(bert).describe());
  };
  d.synthetic = [](const ModelOptions&, int64_t) -> std::string {
    throw invalid("a text classifier needs data with the columns tokens and label",
                  "name a data set: " + option_text("data", "npz:FILE"));
  };
  return d;
}

/// The vectors of all tokens; only for prediction.
Described encoder(const nn::BertOptions& bert) {
  Described d;
  d.build = [=](const ModelOptions& o, const data::Source& train) {
    expect_vocabulary(o, train, bert.vocabulary);
    if (o.scored)
      throw invalid("config.json: architectures is [\"BertModel\"], which has no head, so there is no loss",
                    "predict its vectors with `tutti predict`, or name BertForMaskedLM in config.json");
    return Task(
        [=](nn::Builder& b, const Batch& x) {
          Value tokens = x.class_ids("tokens", bert.vocabulary);
          Value y = b.output(nn::Bert(bert).forward(b, bert_inputs(x, tokens, bert)));
          Value none = b.graph().full(y.dtype(), 0);
          return Outcome{.loss_sum = none, .weight = none + 1.0, .output = y};
        },
        nn::Bert(bert).describe());
  };
  d.synthetic = synthetic_text(bert.vocabulary, bert.positions);
  return d;
}

Described masked(const nn::BertOptions& bert, std::optional<int64_t> mask) {
  Described d;
  d.build = [=](const ModelOptions& o, const data::Source& train) {
    expect_vocabulary(o, train, bert.vocabulary);
    const bool labelled =
        std::ranges::any_of(train.columns(), [](const data::Column& c) { return c.name == "labels"; });
    if (o.scored && !mask && !labelled)
      throw invalid("the folder has no tokenizer.json that says which token is [MASK]",
                    "add \"mask_token_id\" to config.json, or use data with a column labels");
    return masked_language(bert, {.mask = mask.value_or(0), .random = bert.vocabulary}, o.scored);
  };
  d.synthetic = synthetic_text(bert.vocabulary, bert.positions);
  d.drawn = [](const ModelOptions&, const data::Source& train) {
    return std::vector<data::Column>{{.name = "labels", .type = train.column("tokens").type}};
  };
  return d;
}

Described read(Config& c, const std::string& architecture) {
  nn::BertOptions bert = options_of(c);
  c.expect("position_embedding_type", "absolute", "relative positions are not supported");
  std::optional<int64_t> mask = c.optional_integer("mask_token_id", 0);
  if (mask && *mask >= bert.vocabulary) c.fail("mask_token_id", fmt::format("expected less than {}", bert.vocabulary));
  double dropout = c.probability("classifier_dropout", bert.dropout);
  int64_t classes = labels_of(c);
  const bool classifies = architecture == "BertForSequenceClassification";
  Described d = classifies ? classifier(c, bert, {"classifier", classes, dropout})
                : architecture == "BertForNextSentencePrediction" ? classifier(c, bert, {"cls.seq_relationship", 2, 0})
                : architecture == "BertModel"                     ? encoder(bert)
                                                                  : masked(bert, mask);
  if (classifies) c.expect("problem_type", "single_label_classification", "other problems are not supported");
  const bool pools = classifies || architecture == "BertForNextSentencePrediction";
  d.context = [positions = bert.positions](const ModelOptions& o) { return context_of(o, positions); };
  d.rename = [=, tied = bert.tied](HostTensors& all, const std::string& file) {
    add_prefix(all, "bert.", "embeddings.word_embeddings.weight", {"cls.", "classifier."});
    rename_ending(all, "LayerNorm.gamma", "LayerNorm.weight");
    rename_ending(all, "LayerNorm.beta", "LayerNorm.bias");
    // What the objective does not use: as transformers does when it loads another head.
    drop(all, {"bert.embeddings.position_ids"});
    if (!pools) drop(all, {"bert.pooler.*", "cls.seq_relationship.*", "classifier.*"});
    if (classifies) drop(all, {"cls.*"});
    if (pools && !classifies) drop(all, {"cls.predictions.*", "classifier.*"});
    if (architecture == "BertModel") drop(all, {"cls.*"});
    if (tied) drop_tied(all, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight", file);
    drop_tied(all, "cls.predictions.decoder.bias", "cls.predictions.bias", file);
  };
  return d;
}

}  // namespace

extern const Family bert_family{
    .model_type = "bert",
    .doc = "BERT: masked language, sequence classification, next sentence, vectors",
    .architectures = {"BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification",
                      "BertForNextSentencePrediction", "BertModel"},
    .read = read};

}  // namespace tutti::hf
