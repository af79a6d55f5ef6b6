#include "verify/bisect/first_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti::bisect {
namespace {

/// Only the samples of the first batches, in order, so that devices do not store unused data.
data::TensorSet first_samples(const data::Source& set, int64_t count, uint64_t seed) {
  std::vector<int32_t> order = data::shuffled_order(set.size(), seed, 0);
  order.resize(static_cast<size_t>(std::min(count, set.size())));
  return data::subset(set, order);
}

/// The states before the first step.
Tensors first_states(const Graph& step, Graph init, const BisectOptions& o, const InputLayout& form,
                     const data::Source& set) {
  Tensors states;
  for (const State& s : step.states())
    if (s.before != no_id) states.emplace(s.name, Tensor(step.info(s.before).type));
  states.at("seed").at = {static_cast<double>(o.seed & 0xffffffffu), static_cast<double>(o.seed >> 32)};
  if (auto scale = states.find("loss_scale"); scale != states.end()) scale->second.at = {LossScaling{}.initial};
  for (auto& [name, t] : truths_of(init, {{"seed", states.at("seed")}}))
    if (auto it = states.find(name); it != states.end()) it->second = t;
  for (const data::Table& t : set.tables())
    if (auto it = states.find(form.table_state(t.name)); it != states.end()) it->second = tensor_from(t.type, t.data);
  return states;
}

/// Checks the options.
data::TensorSet samples_of(const BisectOptions& o) {
  if (o.batch < 1) throw invalid(fmt::format("batch is {}, must be at least 1", o.batch));
  if (o.steps < 1) throw invalid(fmt::format("steps is {}, must be at least 1", o.steps));
  if (o.batch > o.set->size())
    throw invalid(
        fmt::format("data set '{}' has {} samples, fewer than one batch of {}", o.set->name, o.set->size(), o.batch),
        "use a smaller batch");
  return first_samples(*o.set, o.steps * o.batch, o.seed);
}

}  // namespace

FirstSteps::FirstSteps(const BisectOptions& o)
    : set_(samples_of(o)), batches_(data::sequential_order(set_.size()), o.batch, data::Last::drop) {
  Programs programs(o.task, {.optimizer = o.optimizer, .precision = o.precision});
  InputLayout form = layout_of(set_, "train", true);
  step_ = programs.training(form, o.batch);
  inputs_ = first_states(step_, programs.initialization(programs.declare(form)), o, form, set_);
  inputs_["lr"] = Tensor({DType::f32, {}});
  inputs_["lr"].at = {round_to(DType::f32, learning_rate(o.optimizer))};
  inputs_["indices"] = Tensor({DType::i32, {o.batch}});
}

Tensor FirstSteps::indices(int64_t n) const {
  data::Batch batch = batches_[n % batches_.size()];
  Tensor t({DType::i32, {static_cast<int64_t>(batch.indices.size())}});
  t.at.assign(batch.indices.begin(), batch.indices.end());
  return t;
}

}  // namespace tutti::bisect
