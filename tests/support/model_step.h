// A training step of a model, and values for it.
#pragma once
#include <map>
#include <random>
#include <string>

#include "graph/eval.h"
#include "train/step/programs.h"
#include "train/task/model.h"

namespace tutti::test {

/// A step of a built-in model with synthetic data.
inline Graph training_step(const std::string& name, const std::string& size, int64_t batch, TrainerOptions options) {
  const ModelDef& model = find_model(name);
  const ModelOptions of_size{.size = size};
  data::Sources data =
      data::open_data(model.synthetic(of_size, 64), {.context = model.context ? model.context(of_size) : 0});
  return Programs(model.task(of_size, *data.train), options).training(layout_of(*data.train, "set", true), batch);
}

/// Values of all feeds and states: positive floats, so that variances are, and integers that are valid indices.
inline std::map<std::string, Tensor> inputs_of(const Graph& g) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> positive(0.05, 1);
  std::map<std::string, Tensor> all;
  for (const ValueInfo& info : g.values()) {
    if (info.role != Role::feed && info.role != Role::state) continue;
    Tensor t(info.type);
    for (double& x : t.at) x = is_float(info.type.dtype) ? round_to(info.type.dtype, positive(random)) : random() % 2;
    all.emplace(info.name, std::move(t));
  }
  return all;
}

}  // namespace tutti::test
