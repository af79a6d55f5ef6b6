#include "train/run/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/world/world.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "train/run/feeds.h"

namespace tutti {
namespace {

int64_t batch_of(const DeviceModel& model, const data::Source& set) {
  return evaluation_batch(model.options(), model.programs().task(), set);
}

int64_t batches_of(const DeviceModel& model, const data::Source& set) {
  const int64_t batch = batch_of(model, set);
  return (set.size() + batch - 1) / batch;
}

/// Enqueues the program for batches [first, last) of the set; `each` is called with the batch and the ticket of its
/// run.
template <class F>
void each_batch(DeviceModel& model, DeviceModel::Program& p, const data::Source& set, int64_t first, int64_t last,
                F each) {
  data::Batches batches(data::sequential_order(set.size()), batch_of(model, set), data::Last::pad);
  data::BatchLoader loader(set, batches, first, last, model.load_options(p, true));
  for (int64_t i = first; i < last; ++i) {
    const data::Batch& batch = loader.next();
    auto valid = static_cast<int32_t>(batch.valid);
    each(batch, p.step->run([&](const std::string& feed, void* to) {
      if (feed == "valid")
        std::memcpy(to, &valid, sizeof valid);
      else
        fill_batch(loader, batch, {0, batch.indices.size()}, feed, to);
    }));
  }
}

/// What those states come to over the whole set. Ranks take consecutive batches each; where the order counts, every
/// batch is read by itself, and they are added up in their order whoever computed them.
std::vector<double> add_up(DeviceModel& model, DeviceModel::Program& p, const data::Source& set,
                           const std::vector<std::string>& sums) {
  World* world = model.options().local_evaluation ? nullptr : model.options().world.get();
  const int64_t count = batches_of(model, set), ranks = world ? world->size() : 1, rank = world ? world->rank() : 0;
  const bool ordered = model.options().reduce == "ordered";
  std::vector<double> slots(sums.size() * static_cast<size_t>(ordered ? count : ranks));
  auto clear = [&] {
    double zero = 0;  // of as many bytes as any of them has
    for (const std::string& name : sums) model.runner.write(name, &zero, size_of(model.state_type(name).dtype));
  };
  auto take = [&](int64_t slot) {
    for (size_t k = 0; k < sums.size(); ++k)
      slots[static_cast<size_t>(slot) * sums.size() + k] = model.element(sums[k]);
  };
  clear();
  uint64_t last = 0;
  int64_t place = count * rank / ranks;
  each_batch(model, p, set, place, count * (rank + 1) / ranks, [&](const data::Batch&, uint64_t ticket) {
    last = ticket;
    if (!ordered) return;
    take(place++);
    clear();
  });
  model.runner.wait(last);
  if (!ordered) take(rank);
  if (!model.division().owner.empty()) {  // ranks with a batch more get parameters from this one meanwhile
    const int64_t mine = count * (rank + 1) / ranks - count * rank / ranks;
    for (int64_t more = (count + ranks - 1) / ranks - mine; more > 0; --more)
      each_batch(model, p, set, 0, 1, [&](const data::Batch&, uint64_t ticket) { last = ticket; });
    model.runner.wait(last);
  }
  if (world) world->all_reduce(std::span(slots));  // all but one rank add 0 to a slot
  std::vector<double> total(sums.size());
  for (size_t i = 0; i < slots.size(); ++i) total[i % sums.size()] += slots[i];
  return total;
}

/// The variance of the column "target"; 0 if it has none, or if a sample has several targets.
double target_variance(const data::Source& set) {
  constexpr int64_t at_once = 4096;
  double count = 0, mean = 0, squares = 0;
  for (const data::Column& c : set.columns()) {
    if (c.name != "target" || c.type.dtype != DType::f32 || num_elements(c.type.shape) != 1) continue;
    for (int64_t first = 0; first < set.size(); first += at_once) {
      std::vector<int32_t> samples(static_cast<size_t>(std::min(at_once, set.size() - first)));
      std::iota(samples.begin(), samples.end(), static_cast<int32_t>(first));
      for (float x : data::read_samples(set, c.name, samples).as<float>()) {  // Welford's sums
        double delta = x - mean;
        mean += delta / ++count;
        squares += delta * (x - mean);
      }
    }
  }
  return count > 0 ? squares / count : 0;
}

/// Replaces "mse" by its root, and adds the coefficient of determination.
void score_regression(EvalResult& result, const data::Source& set) {
  auto mse = result.metrics.find("mse");
  if (mse == result.metrics.end()) return;
  if (double variance = target_variance(set); variance > 0) result.metrics["r2"] = 1 - mse->second / variance;
  result.metrics["rmse"] = std::sqrt(mse->second);
  result.metrics.erase("mse");
}

}  // namespace

std::vector<std::string> reported_metrics(std::vector<std::string> of_task) {
  if (auto mse = std::ranges::find(of_task, "mse"); mse != of_task.end()) {
    *mse = "rmse";
    of_task.emplace_back("r2");
  }
  return of_task;
}

int64_t evaluation_batch(const TrainerOptions& options, const Task& task, const data::Source& set) {
  if (task.only_batch() > 0) return options.eval_batch;
  return std::clamp<int64_t>(set.size(), 1, options.eval_batch);
}

EvalResult evaluate(DeviceModel& model, const data::Source& set) {
  model.bind(set);
  const std::shared_ptr<DeviceModel::Program> p =
      model.program(DeviceModel::Kind::evaluation, set, batch_of(model, set));
  const std::vector<std::string>& metrics = model.declared()->metrics;
  std::vector<std::string> sums = {"eval.loss", "eval.weight"};
  for (const std::string& m : metrics) {
    sums.push_back(fmt::format("eval.{}.sum", m));
    sums.push_back(fmt::format("eval.{}.count", m));
  }
  std::vector<double> total = add_up(model, *p, set, sums);
  EvalResult result{.loss = total[0] / total[1], .metrics = {}, .samples = set.size()};
  for (size_t k = 0; k < metrics.size(); ++k) result.metrics[metrics[k]] = total[2 * k + 2] / total[2 * k + 3];
  score_regression(result, set);
  return result;
}

namespace {

using NameOfState = std::string (*)(const InputLayout& form, int64_t batch);

/// The rows that a program writes to a state, for every sample.
HostTensor rows_of(DeviceModel& model, const data::Source& set, DeviceModel::Kind kind, NameOfState name) {
  const int64_t size = batch_of(model, set);
  const std::shared_ptr<DeviceModel::Program> p = model.program(kind, set, size);
  std::string state = name(p->form, size);
  HostTensor out{model.state_type(state), {}};
  if (out.type.shape.empty() || out.type.shape[0] != size)
    throw invalid(fmt::format("the task's output is {}, expected [{}, …]", to_string(out.type), size));
  size_t row = num_bytes(out.type) / static_cast<size_t>(size);
  each_batch(model, *p, set, 0, batches_of(model, set), [&](const data::Batch& batch, uint64_t ticket) {
    model.runner.wait(ticket);
    HostTensor y = model.read(state);
    auto bytes = static_cast<std::ptrdiff_t>(row * static_cast<size_t>(batch.valid));
    out.bytes.insert(out.bytes.end(), y.bytes.begin(), y.bytes.begin() + bytes);
  });
  out.type.shape[0] = set.size();
  return out;
}

}  // namespace

HostTensor predict(DeviceModel& model, const data::Source& set) {
  model.bind(set);
  model.expect_whole("predict");
  return rows_of(model, set, DeviceModel::Kind::prediction, &Programs::prediction_state);
}

HostTensor explain(DeviceModel& model, const data::Source& set) {
  model.bind(set);
  model.expect_whole("explain");
  return rows_of(model, set, DeviceModel::Kind::explanation, &Programs::explanation_state);
}

HostTensor sample(DeviceModel& model, const data::Source& set, const Sampler& sampler, int64_t count, uint64_t seed) {
  model.bind(set);
  model.expect_whole("sample");
  model.initialize();
  std::unique_ptr<CompiledGraph> step = model.prepare(model.programs().sampling(sampler, count));
  int32_t zero = 0;
  model.runner.write("sample.seed", seed_words(seed).data(), 8);
  model.runner.write("sample.step", &zero, sizeof zero);
  for (int64_t i = 0; i < sampler.steps; ++i) model.runner.wait(step->run([](const std::string&, void*) {}));
  return model.read("sample.images");
}

}  // namespace tutti
