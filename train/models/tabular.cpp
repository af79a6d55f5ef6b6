// A model for tabular data with the architecture and parameter names of fastai's TabularModel (Howard & Gugger,
// "fastai: a layered API for deep learning", 2020): an embedding per categorical column, concatenated with the
// normalised numbers, then blocks of Linear, ReLU, BatchNorm and Dropout.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/reshape.h"
#include "nn/norms.h"
#include "nn/sequences.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

/// fastai's rule for the width of an embedding.
int64_t embedding_width(int64_t classes) {
  return std::min<int64_t>(600, std::llround(1.6 * std::pow(static_cast<double>(classes), 0.56)));
}

struct Tabular {
  std::vector<data::Column> categories;  ///< i32 [] columns with their number of classes
  bool numbers = false;                  ///< whether the data has a column "numbers", float [count]
  std::vector<int64_t> hidden;
  double dropout = 0;
  int64_t outputs = 1;

  Value forward(Builder& b, const Batch& x) const {
    Values parts;
    for (size_t i = 0; i < categories.size(); ++i) {
      const auto& [name, classes] = std::pair(categories[i].name, categories[i].classes);
      Embedding embedding(classes, embedding_width(classes), {Init::normal, 0, 0.01});
      parts.push_back(b(fmt::format("embeds.{}", i), embedding, x.class_ids(name, classes)));
    }
    // Normalised before the cast: in a 16-bit format 2019 and 2020 can be the same number.
    if (numbers) parts.push_back(cast(b("bn_cont", BatchNorm(), b.output(x["numbers"])), b.compute()));
    std::vector<Layer> layers;
    for (int64_t features : hidden)
      layers.emplace_back(Sequential{Linear(features, {.bias = false}), Relu(), BatchNorm(), Dropout(dropout)});
    layers.emplace_back(Sequential{Linear(outputs)});
    return b("layers", Sequential(layers), parts.size() == 1 ? parts[0] : concat(parts, 1));
  }

  std::string describe() const {
    return fmt::format("Tabular({} categories, {}{} hidden layers, {} outputs)", categories.size(),
                       numbers ? "numbers, " : "", hidden.size(), outputs);
  }
};

Task task(const ModelOptions& o, const data::Source& train) {
  Tabular net{.hidden = o.size == "tiny" ? std::vector<int64_t>{8} : std::vector<int64_t>{200, 100},
              .dropout = o.net.dropout};
  bool label = false, target = false;
  auto refuse = [&](const data::Column& c, const char* expected) {
    return invalid(
        fmt::format("tabular needs the column '{}' as {}, but {} has {}", c.name, expected, o.data, to_string(c.type)),
        "use " + option_text("data", "csv:FILE"));
  };
  for (const data::Column& c : train.columns()) {
    const TensorType& t = c.type;
    if (c.name.starts_with("category.")) {
      if (t != TensorType{DType::i32, {}} || c.classes < 1) throw refuse(c, "i32 whose number of classes is known");
      net.categories.push_back(c);
    } else if (c.name == "numbers") {
      if (!is_float(t.dtype) || t.shape.size() != 1) throw refuse(c, "f32[count]");
      net.numbers = true;
    } else if (c.name == "label") {
      label = true;
      net.outputs = std::max<int64_t>(c.classes, 2);
    } else if (c.name == "target") {
      if (!is_float(t.dtype) || !t.shape.empty()) throw refuse(c, "f32");
      target = true;
    }
  }
  if (net.categories.empty() && !net.numbers)
    throw invalid(
        fmt::format("tabular needs a column 'numbers' or columns 'category.NAME', but {} has neither", o.data),
        "use " + option_text("data", "csv:FILE") + " or synthetic-table:16:8:10");
  if (label == target)
    throw invalid(fmt::format("tabular needs either a column 'label' or a column 'target', but {} has {}", o.data,
                              label ? "both" : "neither"),
                  "use \"label\" (i32) for classes, or \"target\" (f32) for regression");
  std::string text = net.describe();
  return Task(
      [net = std::move(net), label](Builder& b, const Batch& x) {
        Value y = b.output(net.forward(b, x));
        return label ? classified(y, x) : regressed(reshape(y, {x.size()}), x);
      },
      text);
}

}  // namespace

extern const ModelDef tabular_model{
    .name = "tabular",
    .doc =
        "a network for tables: an embedding per categorical column, normalised numeric columns, Linear-ReLU-BatchNorm "
        "blocks",
    .sizes = {{.name = "default",
               .doc = "hidden layers 200-100",
               .batch = 64,
               .eval_batch = 256,
               .lr = 3e-3,
               .epochs = 30,
               .schedule = "one_cycle",
               .dropout = 0.2},
              {.name = "tiny", .doc = "one hidden layer of 8", .batch = 8, .eval_batch = 8}},
    .build = task,
    .synthetic =
        [](const ModelOptions& o, int64_t samples) {
          return fmt::format("synthetic-table:{}:{}", o.size == "tiny" ? "3:2:3" : "16:8:10", samples);
        },
    .takes = {"dropout"}};

}  // namespace tutti
