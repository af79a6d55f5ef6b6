// A recurrent language model: tokens to vectors, LSTM layers, a linear layer; the parameter names of PyTorch's example
// word_language_model.
#include <fmt/format.h>

#include "nn/modules.h"
#include "nn/sequences.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

struct CharLstm {
  int64_t vocabulary, context, width, hidden, layers;
  double dropout = 0;
  Value forward(Builder& b, Value tokens) const {
    Value x =
        b("drop", Dropout(dropout), b("encoder", Embedding(vocabulary, width, {Init::uniform, -0.1, 0.1}), tokens));
    x = b("rnn", Lstm(hidden, {.layers = layers, .dropout = dropout}), x).y;
    return b("decoder", Linear(vocabulary), b("drop_out", Dropout(dropout), x));
  }
  std::string describe() const {
    return fmt::format("CharLstm({} layers of {}, width {}, vocabulary {})", layers, hidden, width, vocabulary);
  }
};

CharLstm model_of(const ModelOptions& o) {
  CharLstm m{.vocabulary = 65, .context = 128, .width = 128, .hidden = 256, .layers = 2};
  if (o.size == "tiny") m = {.vocabulary = 11, .context = 5, .width = 8, .hidden = 12, .layers = 1};
  if (o.context > 0) m.context = o.context;
  m.dropout = o.net.dropout;
  return m;
}

Task task(const ModelOptions& o, const data::Source& train) {
  CharLstm m = model_of(o);
  if (int64_t classes = train.column("tokens").classes; classes > 0) m.vocabulary = classes;
  return language_model(m);
}

}  // namespace

extern const ModelDef char_lstm_model{
    .name = "char_lstm",
    .doc = "LSTM layers that predict the next character of a text",
    .sizes = {{.name = "default", .doc = "2 layers of 256, context 128", .batch = 32, .eval_batch = 32, .lr = 2e-3},
              {.name = "tiny", .doc = "a layer of 12, context 5", .batch = 2, .eval_batch = 2}},
    .build = task,
    .synthetic =
        [](const ModelOptions& o, int64_t samples) {
          CharLstm m = model_of(o);
          return fmt::format("synthetic-text:{}:{}", m.vocabulary, std::min<int64_t>(samples, 1024) * m.context);
        },
    .takes = {"dropout"},
    .context = [](const ModelOptions& o) { return model_of(o).context; }};

}  // namespace tutti
