#include "train/evaluate.h"

#include <fmt/format.h>

#include <cstring>

#include "data/loader.h"
#include "train/feeds.h"

namespace tutti {
namespace {

/// Enqueues the program for every batch of the set; `each` is called with the batch and the ticket of its run.
template <class F>
void each_batch(DeviceModel& model, DeviceModel::Program& p, const data::Source& set, F each) {
  data::Batches batches(data::sequential_order(set.size()), model.options().eval_batch, data::Last::pad);
  data::BatchLoader loader(set, batches, 0, batches.size(), model.load_options(p, true));
  for (int64_t i = 0; i < batches.size(); ++i) {
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

}  // namespace

EvalResult evaluate(DeviceModel& model, const data::Source& set) {
  model.bind(set);
  DeviceModel::Program& p = model.program(DeviceModel::Kind::evaluation, set, model.options().eval_batch);
  const std::vector<std::string>& metrics = model.declared()->metrics;
  std::vector<std::string> sums = {"eval.loss", "eval.weight"};
  for (const std::string& m : metrics) {
    sums.push_back(fmt::format("eval.{}.sum", m));
    sums.push_back(fmt::format("eval.{}.count", m));
  }
  double zero = 0;  // has at least as many bytes as each state
  for (const std::string& name : sums) model.runner.write(name, &zero, size_of(model.state_type(name).dtype));
  uint64_t last = 0;
  each_batch(model, p, set, [&](const data::Batch&, uint64_t ticket) { last = ticket; });
  model.runner.wait(last);
  auto ratio = [&](const std::string& a, const std::string& b) { return model.element(a) / model.element(b); };
  EvalResult result{.loss = ratio("eval.loss", "eval.weight"), .metrics = {}, .samples = set.size()};
  for (const std::string& m : metrics)
    result.metrics[m] = ratio(fmt::format("eval.{}.sum", m), fmt::format("eval.{}.count", m));
  return result;
}

HostTensor predict(DeviceModel& model, const data::Source& set) {
  const int64_t size = model.options().eval_batch;
  model.bind(set);
  DeviceModel::Program& p = model.program(DeviceModel::Kind::prediction, set, size);
  std::string state = Programs::prediction_state(p.form, size);
  HostTensor out{model.state_type(state), {}};
  if (out.type.shape.empty() || out.type.shape[0] != size)
    throw invalid(fmt::format("the task's output is {}, expected [{}, …]", to_string(out.type), size));
  size_t row = num_bytes(out.type) / static_cast<size_t>(size);
  each_batch(model, p, set, [&](const data::Batch& batch, uint64_t ticket) {
    model.runner.wait(ticket);
    HostTensor y = model.read(state);
    auto bytes = static_cast<std::ptrdiff_t>(row * static_cast<size_t>(batch.valid));
    out.bytes.insert(out.bytes.end(), y.bytes.begin(), y.bytes.begin() + bytes);
  });
  out.type.shape[0] = set.size();
  return out;
}

HostTensor sample(DeviceModel& model, const data::Source& set, const Sampler& sampler, int64_t count, uint64_t seed) {
  model.bind(set);
  model.initialize();
  std::unique_ptr<CompiledGraph> step = model.prepare(model.programs().sampling(sampler, count));
  int32_t zero = 0;
  model.runner.write("sample.seed", seed_words(seed).data(), 8);
  model.runner.write("sample.step", &zero, sizeof zero);
  for (int64_t i = 0; i < sampler.steps; ++i) model.runner.wait(step->run([](const std::string&, void*) {}));
  return model.read("sample.images");
}

}  // namespace tutti
