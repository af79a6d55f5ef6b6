// Linear layers with an activation between them.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

const char* const usual_layers = "784,512,256,10";

std::vector<int64_t> parse_layers(const std::string& text) {
  std::vector<int64_t> sizes;
  for (const std::string& part : fields(text, ',')) {
    int64_t n = parse_number<int64_t>(part).value_or(0);
    if (n < 1)
      throw invalid_option("layers", text, fmt::format("'{}' is not a positive integer", part),
                           option_text("layers", usual_layers));
    sizes.push_back(n);
  }
  if (sizes.size() < 2)
    throw invalid_option("layers", text, "at least an input and an output size are needed",
                         option_text("layers", usual_layers));
  return sizes;
}

std::string layers_of(const ModelOptions& o) { return o.layers.empty() ? usual_layers : o.layers; }

Task task(const ModelOptions& o, const data::Source& train) {
  if (o.size == "tiny") return classification(nn::mlp({24, 10}, {.dropout = 0.2}));
  data::Column input = train.column("input");
  std::string layers = layers_of(o);
  std::vector<int64_t> sizes = parse_layers(layers);
  int64_t numbers = num_elements(input.type.shape);
  if (sizes[0] != numbers)
    throw invalid_option("layers", layers,
                         fmt::format("the input size is {}, but a sample of {} has {} elements ({})", sizes[0], o.data,
                                     numbers, to_string(input.type)),
                         option_text("layers", std::to_string(numbers) + layers.substr(layers.find(','))));
  std::vector<data::Column> columns = train.columns();
  auto target = std::ranges::find(columns, "target", &data::Column::name);
  const bool labelled = std::ranges::find(columns, "label", &data::Column::name) != columns.end();
  if (!labelled && target != columns.end() && target->type == TensorType{DType::f32, {}}) {
    if (sizes.back() != 1)
      throw invalid_option("layers", layers,
                           fmt::format("the output size is {}, but {} has one real target", sizes.back(), o.data),
                           option_text("layers", fmt::format("{},1", layers.substr(0, layers.rfind(',')))));
    return regression(nn::mlp({sizes.begin() + 1, sizes.end()}, o.net));
  }
  data::Column label = train.column("label");
  if (sizes.back() < label.classes && label.classes > std::max<int64_t>(train.size(), 1 << 16))
    throw invalid(fmt::format("the {} samples of {} contain the label {}: there would be more classes than samples",
                              train.size(), o.data, label.classes - 1),
                  "number the classes 0, 1, 2, …; if the label is not a class, use a regression model");
  if (sizes.back() < label.classes)
    throw invalid_option(
        "layers", layers,
        fmt::format("the output size is {}, but {} has {} classes", sizes.back(), o.data, label.classes),
        option_text("layers", fmt::format("{},{}", layers.substr(0, layers.rfind(',')), label.classes)));
  return classification(nn::mlp({sizes.begin() + 1, sizes.end()}, o.net));
}

std::string synthetic(const ModelOptions& o, int64_t samples) {
  if (o.size == "tiny") return fmt::format("synthetic:1x12x12:10:{}:16", samples);
  std::vector<int64_t> sizes = parse_layers(layers_of(o));
  return fmt::format("synthetic:{}:{}:{}:16", sizes[0], std::max<int64_t>(2, sizes.back()), samples);
}

}  // namespace

extern const ModelDef mlp_model{.name = "mlp",
                                .doc = "linear layers with activations between them",
                                .sizes = {{.name = "default", .doc = "the sizes of the option layers"},
                                          {.name = "tiny",
                                           .doc = "24 hidden units with dropout, 10 classes",
                                           .batch = 8,
                                           .eval_batch = 8,
                                           .fixed = true}},
                                .build = task,
                                .synthetic = synthetic,
                                .data = "fashion-mnist",
                                .takes = {"layers", "activation", "dropout", "init"}};

}  // namespace tutti
