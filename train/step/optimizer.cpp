#include "train/step/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "graph/ops/mul.h"

namespace tutti {

std::string name(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return std::string(o.name); }, optimizer);
}

double learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.lr; }, optimizer);
}

std::vector<Optimizer> all_optimizers() {
  return []<size_t... k>(std::index_sequence<k...>) {
    return std::vector<Optimizer>{Optimizer(std::in_place_index<k>)...};
  }
  (std::make_index_sequence<std::variant_size_v<Optimizer>>());
}

Optimizer optimizer_named(const std::string& text) {
  std::vector<std::string> names;
  for (const Optimizer& o : all_optimizers()) {
    if (name(o) == text) return o;
    names.push_back(name(o));
  }
  throw OptionError(invalid(fmt::format("unknown optimizer '{}'", text), "use " + alternatives(names)), "optimizer");
}

std::vector<Hyperparameter> hyperparameters(Optimizer& optimizer) {
  return std::visit([](auto& o) { return o.hyperparameters(); }, optimizer);
}

void check(const Optimizer& optimizer) {
  std::visit([](const auto& o) { o.check(); }, optimizer);
}

void apply_optimizer(Graph& g, const Optimizer& optimizer, const std::vector<nn::Parameter>& parameters,
                     const Values& gradients, Value lr, Value step) {
  check(optimizer);
  Graph::Scope scope(g, "update", Phase::update);
  std::visit(
      [&](const auto& o) {
        Values shared = o.shared(g, lr, step);
        std::map<double, Value> rates = {{1, lr}};
        for (size_t k = 0; k < parameters.size(); ++k) {
          const nn::Parameter& p = parameters[k];
          Value& rate = rates[p.properties.lr_scale];
          if (!rate) rate = lr * p.properties.lr_scale;
          o.update({g, p.name, g.latest(p.name), gradients[k], rate, p.properties.decay, shared});
        }
      },
      optimizer);
}

}  // namespace tutti
