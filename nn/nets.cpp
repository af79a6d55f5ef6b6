#include "nn/nets.h"

namespace tutti::nn {
namespace {

void add_hidden(std::vector<Layer>& layers, int64_t size, const NetOptions& o) {
  layers.emplace_back(Linear(size, {.init = o.init}));
  layers.emplace_back(activation(o.activation));
  if (o.dropout > 0) layers.emplace_back(Dropout(o.dropout));
}

}  // namespace

NetOptions::~NetOptions() = default;

Sequential mlp(const std::vector<int64_t>& sizes, const NetOptions& o) {
  std::vector<Layer> layers = {Flatten()};
  for (size_t i = 0; i + 1 < sizes.size(); ++i) add_hidden(layers, sizes[i], o);
  layers.emplace_back(Linear(sizes.back(), {.init = o.init}));
  return Sequential(std::move(layers));
}

Sequential small_cnn(int64_t classes, const NetOptions& o) {
  std::vector<Layer> layers;
  for (int64_t channels : {32, 64}) {
    layers.emplace_back(Conv2d(channels, 3, {.padding = 1, .init = o.init}));
    layers.emplace_back(activation(o.activation));
    layers.emplace_back(MaxPool2d(2));
  }
  layers.emplace_back(Flatten());
  add_hidden(layers, 128, o);
  layers.emplace_back(Linear(classes, {.init = o.init}));
  return Sequential(std::move(layers));
}

}  // namespace tutti::nn
