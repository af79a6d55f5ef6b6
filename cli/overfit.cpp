#include "cli/overfit.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/os/signals.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "graph/op.h"

namespace tutti::cli {

std::vector<std::string> regularisation(const RunOptions& run, const data::Source& set) {
  std::vector<std::string> all;
  Optimizer optimizer = run.trainer_options().optimizer;
  if (learning_rate(optimizer) == 0) all.emplace_back("the learning rate is 0");
  for (const Hyperparameter& h : hyperparameters(optimizer))
    if (h.option == std::string_view("weight-decay") && !h.flag && *h.value > 0)
      all.push_back(fmt::format("--weight-decay {} pulls the weights to 0", *h.value));
  if (const std::string& freeze = run.text("freeze"); !freeze.empty())
    all.push_back(fmt::format("--freeze {}: these parameters are not trained", freeze));
  if (run.trainer.augment != "none")
    all.push_back(fmt::format("--augment {}: the images are different in every step", run.trainer.augment));
  if (run.trainer_options().lora) all.push_back(fmt::format("--lora {}: only adapters are trained", run.text("lora")));
  Graph step =
      Programs(run.make_task(set), run.trainer_options()).training(layout_of(set, "one", false), run.trainer.batch);
  static const std::set<std::string> random = {"dropout", "uniform", "normal", "random_bits"};
  std::set<std::string> seen;
  for (const Node& n : step.nodes()) {
    bool drops = n.op->name == "attention" && n.attrs.has("p") && n.attrs.f("p") > 0;
    if (n.phase == Phase::forward && (drops || random.contains(n.op->name)) && seen.insert(n.op->name).second)
      all.push_back(fmt::format("{}{} is random in every step", drops ? "dropout of attention" : n.op->name,
                                n.label.empty() ? "" : " at " + n.label));
  }
  return all;
}

Overfit overfit(Trainer& trainer, const data::Source& set, const RunOptions& run, int64_t steps,
                const Trainer::Watch& watch) {
  std::vector<int32_t> samples = data::shuffled_order(set.size(), trainer.seed(), 0);
  samples.resize(static_cast<size_t>(run.trainer.batch));
  data::TensorSet batch = data::subset(set, samples);
  Overfit out;
  os::catch_signals();
  while (trainer.steps() < steps && !out.passed && !out.interrupted) {
    trainer.train(batch, 0, watch);
    os::catch_signals();
    out.interrupted = os::interrupted();
    out.first = trainer.losses().front();
    out.last = trainer.losses().back();
    out.goal = std::max(out.first / 100, 1e-4);
    out.passed = out.last <= out.goal;
  }
  os::release_signals();
  if (out.passed || out.interrupted) return out;
  out.reasons = regularisation(run, batch);
  const std::vector<float>& losses = trainer.losses();
  if (out.last < 0.99 * losses[losses.size() * 3 / 4])
    out.reasons.push_back(fmt::format("the loss still falls: --overfit {}, or a larger --lr", 4 * steps));
  if (out.reasons.empty())
    out.reasons.push_back(
        fmt::format("a learning rate of {:g} is too small or too large: try a larger --lr, then a smaller one",
                    learning_rate(run.trainer_options().optimizer)));
  return out;
}

}  // namespace tutti::cli
