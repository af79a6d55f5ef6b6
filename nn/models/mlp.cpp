// Linear layers with an activation between them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/status.h"
#include "nn/model.h"

namespace tutti::nn {
namespace {

std::vector<int64_t> parse_layers(const std::string& text) {
  std::vector<int64_t> sizes;
  for (size_t at = 0; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, comma - at);
    at = comma + 1;
    int64_t n = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (error != std::errc() || end != part.data() + part.size() || n < 1)
      throw invalid(fmt::format("--layers {}: '{}' is not a positive number", text, part), "--layers 784,512,256,10");
    sizes.push_back(n);
  }
  if (sizes.size() < 2)
    throw invalid(fmt::format("--layers {}: at least input and output are needed", text), "--layers 784,512,256,10");
  return sizes;
}

Layer make(const ModelOptions& o, const TensorType& sample, int64_t classes) {
  std::vector<int64_t> sizes = parse_layers(o.layers);
  if (sizes[0] != num_elements(sample.shape))
    throw invalid(fmt::format("--layers {}: the first layer takes {} numbers, a sample of {} has {} ({})", o.layers,
                              sizes[0], o.data, num_elements(sample.shape), to_string(sample)),
                  fmt::format("--layers {}{}", num_elements(sample.shape), o.layers.substr(o.layers.find(','))));
  if (sizes.back() < classes)
    throw invalid(
        fmt::format("--layers {}: the last layer gives {} classes, {} has {}", o.layers, sizes.back(), o.data, classes),
        fmt::format("--layers {},{}", o.layers.substr(0, o.layers.rfind(',')), classes));
  return mlp({sizes.begin() + 1, sizes.end()}, o.net);
}

TensorType sample(const ModelOptions& o, int64_t& classes) {
  std::vector<int64_t> sizes = parse_layers(o.layers);
  classes = std::max<int64_t>(2, sizes.back());
  return {DType::f32, {sizes[0]}};
}

}  // namespace

extern const ModelDef mlp_model;
const ModelDef mlp_model{.name = "mlp",
                         .doc = "linear layers of --layers with an activation between them",
                         .make = make,
                         .sample = sample,
                         .standard = []() -> Layer {
                           return mlp({512, 256, 10}, {.dropout = 0.2});
                         },
                         .tiny = []() -> Layer {
                           return mlp({24, 10}, {.dropout = 0.2});
                         },
                         .batch = 64,
                         .layered = true};

}  // namespace tutti::nn
