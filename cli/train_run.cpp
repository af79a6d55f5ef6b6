// The run of `tutti train`: where it starts and ends, and what it prints and writes.
#include <fmt/format.h>

#include <algorithm>

#include "cli/hf_output.h"
#include "cli/metrics.h"
#include "cli/print.h"
#include "cli/top/running.h"
#include "cli/train_command.h"
#include "core/base/option_text.h"
#include "core/os/signals.h"
#include "data/files/checkpoint.h"
#include "train/io/weights.h"
#include "train/run/plan.h"

namespace tutti::cli {
namespace {

/// "  test loss 0.4428  accuracy 83.89 %".
std::string score_text(const EvalResult& score) {
  std::string text = fmt::format("  test loss {:.4f}", score.loss);
  for (const auto& [name, value] : score.metrics) text += fmt::format("  {} {}", name, metric_text(name, value));
  return text;
}

}  // namespace

int64_t TrainCommand::take_up(Trainer& trainer, const data::Source& set) {
  trainer.load(resume);
  if (run.named("seed") && run.trainer.seed != trainer.seed())
    throw invalid_option("seed", run.trainer.seed,
                         fmt::format("the resumed run in {} has seed {}", resume, trainer.seed()),
                         "omit --seed: a resumed run keeps its seed");
  run.trainer.seed = trainer.seed();
  const Position before = trainer.position();
  const int64_t of_epochs = trainer.steps_left(set, settings.epochs);  // also updates position()
  const int64_t left = settings.steps > 0 ? std::max<int64_t>(settings.steps - trainer.steps(), 0) : of_epochs;
  const Position& now = trainer.position();
  if (before.sample > 0 && before.samples != now.samples && !before.in_steps)
    print_err(
        "epoch {} starts again from its beginning: the training set has {} samples, but had {} when {} was saved\n",
        now.epoch + 1, now.samples, before.samples, resume);
  trainer.set_schedule(parse_schedule(run.text("schedule"), std::max<int64_t>(trainer.steps() + now.ahead + left, 1)));
  return trainer.steps() + left;
}

void TrainCommand::save_weights(Trainer& trainer, const data::Source& set) {
  if (adapters.empty() && merged.empty()) return;
  HostTensors all;
  for (const nn::Parameter& p : trainer.model_states()) all.emplace(p.name, trainer.state(p.name));
  nn::Lora lora = run.trainer_options().lora.value_or(nn::Lora{});
  if (!adapters.empty()) write_adapters(adapters, all, lora, adapter_base(run));
  if (!merged.empty() && merged.ends_with(".safetensors"))
    write_checkpoint(merged, {tutti::merged(all, lora), {{"format", "pt"}}});
  else if (!merged.empty())
    write_folder(merged, run, set, tutti::merged(all, lora));
  wrote_weights = true;
}

/// Prints progress, and collects what the page shows.
class TrainCommand::Observer : public RunObserver {
 public:
  Observer(TrainCommand& command, Trainer& trainer, const data::Source& set, int64_t total, ProgressLine& progress)
      : c_(command),
        trainer_(trainer),
        set_(set),
        total_(total),
        progress_(progress),
        model_(c_.run.model + ":" + c_.run.definition().size(c_.run.model_values.size).name) {}

  bool stop() override {
    os::catch_signals();
    return os::interrupted();
  }
  void progress(const Progress& p) override {
    progress_.show(p);
    c_.last = p;
    note_.say({{"device", trainer_.device().id},
               {"model", model_},
               {"step", p.step},
               {"steps", total_},
               {"loss", p.loss},
               {"samples_per_s", p.samples_per_second},
               {"batch", c_.run.trainer.batch},
               {"memory_bytes", trainer_.peak_bytes()}});
  }
  bool reads_steps() const override { return c_.page.asked(); }
  void step(int64_t step, const Scalars& scalars) override { c_.page.step(step, scalars); }
  void epoch(const EpochResult& e) override {
    progress_.print(fmt::format("epoch {}  step {}  loss {:.4f}{}  {}", e.epoch, e.step, e.loss,
                                e.score ? score_text(*e.score) : "", rate_text(e.samples_per_second)));
    if (e.score && c_.page.asked()) c_.page.evaluation(e.step, e.scalars());
  }
  void warn(const std::string& text) override { progress_.warn(text); }
  std::map<std::string, std::string> metadata() override {
    return {{"run", nlohmann::json(c_.run.remembered()).dump()}};
  }
  void save(Trainer& trainer) override { c_.save_weights(trainer, set_); }

 private:
  TrainCommand& c_;
  Trainer& trainer_;
  const data::Source& set_;
  int64_t total_;
  ProgressLine& progress_;
  std::string model_;
  RunningNote note_;
};

int TrainCommand::train_overfit(const Device& device, Trainer& trainer, const data::Sources& data,
                                ProgressLine& progress) {
  Observer observer(*this, trainer, *data.train, *overfit, progress);
  Overfit o;
  try {
    o = cli::overfit(trainer, *data.train, run, *overfit, [&](const Progress& p) {
      progress.show(p);
      loop->log_steps(trainer, p, observer);
      return true;
    });
  } catch (const NotFinite& e) {
    progress.clear();
    throw Error(Code::internal, e.what(), e.remedy);
  }
  progress.clear();
  profile.finish(parse_precision(run.text("precision")), run.threads(), quiet);
  return report(device, trainer, o);
}

TrainCommand::Outcome TrainCommand::train(Trainer& trainer, const data::Sources& data, int64_t total,
                                          ProgressLine& progress) {
  os::catch_signals();
  Observer observer(*this, trainer, *data.train, total, progress);
  SetPasses passes(trainer, *data.train);
  loop->end_at(total);
  Outcome o{loop->train(trainer, passes, settings.no_eval ? nullptr : data.test.get(), observer), {}};
  const bool nothing_left = o.history.empty() && !o.stopped;
  if (nothing_left && !(adapters.empty() && merged.empty())) {  // weights were requested anyway
    trainer.prepare(*data.train);
    save_weights(trainer, *data.train);
  }
  os::release_signals();
  if (o.converged)
    progress.print(
        fmt::format("the test loss has not fallen for {} epochs (--patience): done", o.evaluations_since_best));
  if (o.on_target)
    progress.print(fmt::format("--target {}: reached after {} steps and {:.1f} s of training", settings.target,
                               trainer.steps(), o.seconds));
  if (!o.history.empty()) o.score = o.history.back().score;
  if (nothing_left && !settings.no_eval) o.score = trainer.evaluate(*data.test);  // resumed a finished run
  return o;
}

}  // namespace tutti::cli
