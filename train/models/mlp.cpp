// Linear layers with an activation between them.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "core/base/text.h"
#include "train/model.h"
#include "train/tasks.h"

namespace tutti {
namespace {

std::vector<int64_t> parse_layers(const std::string& text) {
  std::vector<int64_t> sizes;
  for (const std::string& part : fields(text, ',')) {
    int64_t n = parse_number<int64_t>(part).value_or(0);
    if (n < 1)
      throw invalid(fmt::format("--layers {}: '{}' is not a positive number", text, part), "--layers 784,512,256,10");
    sizes.push_back(n);
  }
  if (sizes.size() < 2)
    throw invalid(fmt::format("--layers {}: at least input and output are needed", text), "--layers 784,512,256,10");
  return sizes;
}

Task task(const ModelOptions& o, const data::Source& train) {
  if (o.size == "tiny") return classification(nn::mlp({24, 10}, {.dropout = 0.2}));
  data::Column input = train.column("input"), label = train.column("label");
  std::vector<int64_t> sizes = parse_layers(o.layers);
  int64_t numbers = num_elements(input.type.shape);
  if (sizes[0] != numbers)
    throw invalid(fmt::format("--layers {}: the first layer takes {} numbers, a sample of {} has {} ({})", o.layers,
                              sizes[0], o.data, numbers, to_string(input.type)),
                  fmt::format("--layers {}{}", numbers, o.layers.substr(o.layers.find(','))));
  if (sizes.back() < label.classes && label.classes > std::max<int64_t>(train.size(), 1 << 16))
    throw invalid(fmt::format("{} samples of {} have a label of {}: more classes than samples", train.size(), o.data,
                              label.classes - 1),
                  "number the classes 0, 1, 2, …; or, if that is no class, choose a model of regression");
  if (sizes.back() < label.classes)
    throw invalid(fmt::format("--layers {}: the last layer gives {} classes, {} has {}", o.layers, sizes.back(), o.data,
                              label.classes),
                  fmt::format("--layers {},{}", o.layers.substr(0, o.layers.rfind(',')), label.classes));
  return classification(nn::mlp({sizes.begin() + 1, sizes.end()}, o.net));
}

std::string made_up(const ModelOptions& o, int64_t samples) {
  if (o.size == "tiny") return fmt::format("synthetic:1x12x12:10:{}:16", samples);
  std::vector<int64_t> sizes = parse_layers(o.layers);
  return fmt::format("synthetic:{}:{}:{}:16", sizes[0], std::max<int64_t>(2, sizes.back()), samples);
}

}  // namespace

extern const ModelDef mlp_model;
const ModelDef mlp_model{
    .name = "mlp",
    .doc = "linear layers of --layers with an activation between them",
    .sizes = {{.name = "default", .doc = "of --layers"},
              {.name = "tiny", .doc = "24 hidden units with dropout, 10 classes", .batch = 8, .eval_batch = 8}},
    .task = task,
    .made_up = made_up,
    .data = "fashion-mnist",
    .layered = true};

}  // namespace tutti
