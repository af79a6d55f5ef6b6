// A recurrent classifier: LSTM over the sequence, a linear layer on its last state.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/reshape.h"
#include "nn/sequences.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

struct LstmClassifier {
  int64_t hidden, classes;
  Value forward(Builder& b, Value x, Value lengths) const {
    Value last = b("lstm", Lstm(hidden), x, lengths).h_n;
    return b("fc", Linear(classes), reshape(last, {x.shape()[0], hidden}));
  }
};

Task task(const ModelOptions& o, const data::Source& train) {
  data::Column sequence = train.column("input");
  if (sequence.type.shape.size() != 2)
    throw invalid(
        fmt::format("lstm needs sequences [steps, features], but {} has {}", o.data, to_string(sequence.type)),
        "use " + option_text("data", "synthetic:64x64:10") + ", or another model");
  LstmClassifier model{.hidden = o.size == "tiny" ? 16 : 256,
                       .classes = std::max<int64_t>(train.column("label").classes, 2)};
  // Sequences of different lengths are padded; the column "length" has the number of valid steps.
  bool lengths = std::ranges::any_of(train.columns(), [](const data::Column& c) { return c.name == "length"; });
  return Task(
      [=](Builder& b, const Batch& x) {
        Value n = lengths ? x["length"] : Value{};
        return classified(b.output(model.forward(b, b.input(x["input"]), n)), x);
      },
      fmt::format("LstmClassifier({}, {})", model.hidden, model.classes));
}

}  // namespace

extern const ModelDef lstm_model{
    .name = "lstm",
    .doc = "an LSTM classifier for sequences, with a linear layer on the last state; optional column \"length\"",
    .sizes = {{.name = "default", .doc = "256 hidden units, 64 steps of 64 features", .batch = 64, .eval_batch = 64},
              {.name = "tiny", .doc = "16 hidden units, 5 steps of 8 features", .batch = 4, .eval_batch = 4}},
    .build = task,
    .synthetic = [](const ModelOptions& o, int64_t samples) {
      return fmt::format("synthetic:{}:10:{}:16", o.size == "tiny" ? "5x8" : "64x64", samples);
    }};

}  // namespace tutti
