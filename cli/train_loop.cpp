// The loop of a training run: epochs, evaluation, saving, logs.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cli/hf_output.h"
#include "cli/metrics.h"
#include "cli/print.h"
#include "cli/signals.h"
#include "cli/top/running.h"
#include "cli/train_command.h"
#include "core/base/option_text.h"
#include "data/files/checkpoint.h"
#include "train/io/weights.h"
#include "train/run/evaluate.h"
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

int64_t TrainCommand::steps_per_epoch(const data::Source& set) const {
  return set.size() / run.trainer.batch + (run.trainer.keep_last && set.size() % run.trainer.batch != 0);
}

int64_t TrainCommand::total_steps(const data::Source& set) const {
  int64_t per_epoch = steps_per_epoch(set);
  if (per_epoch == 0)
    throw invalid_option("batch", run.trainer.batch,
                         fmt::format("the training set of --data {} has {} samples", run.data, set.size()),
                         fmt::format("--batch {} or less", set.size()));
  // Parts are numbered with an i32, too.
  const int64_t most = std::numeric_limits<int32_t>::max() / parts_of(run.trainer);
  if (run.steps > most || (run.steps == 0 && run.epochs > most / per_epoch))
    throw invalid(fmt::format("{}: more than 2^31 - 1 steps", run.steps > 0 ? fmt::format("--steps {}", run.steps)
                                                                            : fmt::format("--epochs {}", run.epochs)),
                  "use fewer");
  return run.steps > 0 ? run.steps : run.epochs * per_epoch;
}

int64_t TrainCommand::take_up(Trainer& trainer, const data::Source& set) {
  trainer.load(resume);
  if (CheckpointHeader header = read_checkpoint_header(resume); header.metadata.contains("best"))
    best.restore(header.metadata.at("best"));
  if (run.named("seed") && run.trainer.seed != trainer.seed())
    throw invalid_option("seed", run.trainer.seed,
                         fmt::format("the resumed run in {} has seed {}", resume, trainer.seed()),
                         "omit --seed: a resumed run keeps its seed");
  run.trainer.seed = trainer.seed();
  const Position before = trainer.position();
  const int64_t of_epochs = trainer.steps_left(set, run.epochs);  // also updates position()
  const int64_t left = run.steps > 0 ? std::max<int64_t>(run.steps - trainer.steps(), 0) : of_epochs;
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

void TrainCommand::log_steps(Trainer& trainer, const Progress& p, size_t& logged, ProgressLine& progress) {
  std::vector<Norms> norms = trainer.take_norms();
  bool logs = log && log->failure().empty();
  if (!logs && !page.asked()) return;
  auto memory = static_cast<double>(trainer.peak_bytes());
  for (; logged < trainer.losses().size(); ++logged) {
    int64_t step = begun_at + static_cast<int64_t>(logged);
    Scalars scalars{{"loss", trainer.losses()[logged]},
                    {"learning_rate", trainer.learning_rate(step)},
                    {"samples_per_s", p.samples_per_second},
                    {"memory_bytes", memory}};
    if (logged < trainer.gradient_norms().size()) scalars["gradient_norm"] = trainer.gradient_norms()[logged];
    if (page.asked()) page.step(step + 1, scalars);
    if (logs) log->step(step + 1, scalars);
  }
  if (!logs) return;
  for (const Norms& n : norms) {
    Scalars scalars;
    for (const auto& [name, x] : n.gradient) scalars.emplace("grad_norm/" + name, x);
    for (const auto& [name, x] : n.weight) scalars.emplace("weight_norm/" + name, x);
    log->norms(n.step, scalars);
  }
  print_log(progress);
}

void TrainCommand::print_log(ProgressLine& progress) {
  if (std::string notice = log->take_notice(); !notice.empty()) progress.warn(fmt::format("--log-dir: {}", notice));
  if (!log->failure().empty())
    progress.warn(fmt::format("--log-dir: {}; the run continues without its log", log->failure()));
}

void TrainCommand::log_epoch(const Trainer& trainer, const Outcome& o, ProgressLine& progress) {
  if (!o.scored) return;
  Scalars scalars{o.score.metrics.begin(), o.score.metrics.end()};
  scalars["loss"] = o.score.loss;
  scalars["train_loss"] = o.result.loss;
  if (page.asked()) page.evaluation(trainer.steps(), scalars);
  if (!log || !log->failure().empty()) return;
  log->epoch(trainer.steps(), scalars);
  print_log(progress);
}

namespace {

/// Runs epochs until the end of the run, a signal, or --patience.
class EpochLoop {
 public:
  EpochLoop(TrainCommand& command, Trainer& trainer, const data::Sources& data, int64_t total, ProgressLine& progress)
      : c_(command),
        trainer_(trainer),
        data_(data),
        total_(total),
        progress_(progress),
        saver_(command.checkpoint, command.keep, command.keep_best),
        size_(command.run.definition().size(command.run.model_values.size).name),
        due_(command.save_every, trainer.steps()),
        goal_(Goal::parse(command.target)) {
    saver_.began_from(command.resume);
  }

  TrainCommand::Outcome run() {
    while (trainer_.steps() < total_ && !ending() && !out_.converged && !out_.on_target) {
      try {
        train_epoch();
        end_epoch();
      } catch (const NotFinite& e) {
        progress_.clear();
        c_.log_steps(trainer_, c_.last, logged_, progress_);
        c_.failed_at = e.step;
        throw Error(Code::internal, e.what(), with_last_saved(e.remedy));
      }
      ++out_.epochs;
    }
    finish();
    return std::move(out_);
  }

 private:
  /// Whether a signal ends the run; with other ranks what all of them agreed on last.
  bool ending() const { return c_.ranks.alone() ? interrupted() : ending_; }

  /// Settles what each rank decides by itself, its signals and how full its disk is: true where any rank says so.
  bool any(bool x) { return c_.ranks.alone() ? x : c_.ranks.world()->any(x); }
  void settle_ending() { ending_ = any(interrupted()); }

  /// What other ranks' messages say where they wait for this one.
  void doing(const char* what) {
    if (!c_.ranks.alone()) c_.ranks.world()->at(trainer_.steps(), what);
  }

  bool epoch_ended() const { return trainer_.position().sample == 0; }

  std::string with_last_saved(const std::string& remedy) {
    return saver_.last_saved().empty() ? remedy
                                       : fmt::format("{}; the last good checkpoint is {}", remedy, saver_.last_saved());
  }

  /// Warns once that something could not be saved.
  void tell(const std::optional<Error>& failure) {
    if (std::exchange(told_, failure.has_value()) || !failure) return;
    progress_.warn(fmt::format("not saved: {}\n  try: {}{}the run continues and tries again at the next save",
                               failure->what(), failure->remedy, failure->remedy.empty() ? "" : "; "));
  }

  void save(bool best) {
    doing("saving");
    if (!c_.checkpoint.empty() || (c_.saves && trainer_.sharded())) {
      Checkpoint state = trainer_.snapshot(
          c_.checkpoint, {{"run", nlohmann::json(c_.run.remembered()).dump()}, {"best", c_.best.text()}});
      if (c_.ranks.writes()) saver_.save(std::move(state), trainer_.steps(), best);
    }
    weights_failure_.reset();
    try {
      c_.save_weights(trainer_, *data_.train);
    } catch (const Error& e) {
      tell(weights_failure_ = e);
    }
  }

  /// Callback after losses were read; returning false stops.
  bool watch(const Progress& p) {
    progress_.show(p);
    c_.last = p;
    c_.log_steps(trainer_, p, logged_, progress_);
    if (!weights_failure_) tell(saver_.failure());
    note_.say({{"device", trainer_.device().id},
               {"model", c_.run.model + ":" + size_},
               {"step", p.step},
               {"steps", total_},
               {"loss", p.loss},
               {"samples_per_s", p.samples_per_second},
               {"batch", c_.run.trainer.batch},
               {"memory_bytes", trainer_.peak_bytes()}});
    catch_signals();
    return !interrupted() && !due_.now();
  }

  /// Trains to the end of the epoch or the run, or until a signal; saves checkpoints that are due.
  void train_epoch() {
    double loss = 0, with_loss = 0, seconds = 0;
    int64_t first = trainer_.steps();
    do {
      out_.result = trainer_.train(*data_.train, due_.steps_left(trainer_.steps(), total_),
                                   [&](const Progress& p) { return watch(p); });
      auto steps = static_cast<double>(out_.result.steps);
      if (auto count = static_cast<double>(out_.result.with_loss); count > 0) {
        loss += out_.result.loss * count;
        with_loss += count;
      }
      seconds += steps / out_.result.samples_per_second;
      settle_ending();
      if (epoch_ended() || trainer_.steps() == total_ || ending()) break;
      if (any(saver_.full())) {  // training continues; saved once the queue has room
        if (!std::exchange(slow_disk_, true))
          progress_.warn(fmt::format(
              "--save-every {}: the disk is too slow; checkpoints are saved as often as possible", c_.save_every));
        continue;
      }
      save(false);
      due_.restart(trainer_.steps());
    } while (true);
    auto steps = static_cast<double>(trainer_.steps() - first);
    out_.result.loss = loss / with_loss;
    out_.result.samples_per_second = steps / seconds;
    run_steps_ += steps;
    run_seconds_ += seconds;
  }

  void end_epoch() {
    out_.scored = !c_.no_eval && !ending();
    if (out_.scored) {
      doing("evaluation");
      out_.score = trainer_.evaluate(*data_.test);
      settle_ending();
      trainer_.report_validation_loss(out_.score.loss);
      c_.best.update(out_.score.loss);
      out_.converged = c_.patience > 0 && c_.best.evaluations_since_best >= c_.patience;
      out_.on_target = goal_.reached(out_.score);
    }
    remember_epoch();
    progress_.print(fmt::format("epoch {}  step {}  loss {:.4f}{}  {}", trainer_.position().epoch + !epoch_ended(),
                                trainer_.steps(), out_.result.loss, out_.scored ? score_text(out_.score) : "",
                                rate_text(out_.result.samples_per_second)));
    c_.log_epoch(trainer_, out_, progress_);
    if (!c_.ranks.alone()) c_.ranks.expect_same_state(trainer_.state_hash(), trainer_.steps());
    save(out_.scored && c_.best.evaluations_since_best == 0);
    due_.restart(trainer_.steps());
  }

  double training_seconds() const { return run_seconds_ * static_cast<double>(c_.run.trainer.batch); }

  void remember_epoch() {
    nlohmann::ordered_json entry{
        {"epoch", trainer_.position().epoch + !epoch_ended()}, {"step", trainer_.steps()}, {"loss", out_.result.loss}};
    if (out_.scored) {
      entry["test_loss"] = out_.score.loss;
      entry["metrics"] = out_.score.metrics;
    }
    entry["samples_per_s"] = out_.result.samples_per_second;
    entry["seconds"] = training_seconds();
    out_.history.push_back(std::move(entry));
  }

  void finish() {
    const bool nothing_left = out_.epochs == 0 && !ending();
    if (nothing_left && !(c_.adapters.empty() && c_.merged.empty())) {  // weights were requested anyway
      trainer_.prepare(*data_.train);
      c_.save_weights(trainer_, *data_.train);
    }
    try {
      saver_.finish();
      if (weights_failure_) throw *weights_failure_;
    } catch (const Error& e) {  // the options were valid, so this is not an input error
      throw Error(Code::internal, e.what(), with_last_saved(e.remedy));
    }
    out_.good = saver_.last_saved();
    out_.saved = saver_.wrote();
    release_signals();
    if (out_.converged)
      progress_.print(
          fmt::format("the test loss has not fallen for {} epochs (--patience): done", c_.best.evaluations_since_best));
    if (out_.on_target)
      progress_.print(fmt::format("--target {}: reached after {} steps and {:.1f} s of training", c_.target,
                                  trainer_.steps(), training_seconds()));
    out_.seconds = training_seconds();
    out_.cut_short = trainer_.steps() < total_ && !out_.converged && !out_.on_target;
    if (out_.epochs == 0 && !c_.no_eval && !out_.cut_short) {  // resumed a finished run
      out_.score = trainer_.evaluate(*data_.test);
      out_.scored = true;
    }
    trainer_.check_memory();
    if (run_seconds_ > 0) out_.rate = run_steps_ / run_seconds_;
  }

  TrainCommand& c_;
  Trainer& trainer_;
  const data::Sources& data_;
  int64_t total_;
  ProgressLine& progress_;
  TrainCommand::Outcome out_;
  Saver saver_;
  std::string size_;
  SaveClock due_;
  Goal goal_;
  RunningNote note_;
  std::optional<Error> weights_failure_;
  bool told_ = false, slow_disk_ = false, ending_ = false;
  size_t logged_ = 0;
  double run_steps_ = 0, run_seconds_ = 0;  // of all epochs; run_seconds_ sums steps / (samples per second)
};

}  // namespace

TrainCommand::Outcome TrainCommand::train(Trainer& trainer, const data::Sources& data, int64_t total,
                                          ProgressLine& progress) {
  if (!target.empty()) {
    const Programs programs(run.make_task(*data.test), program_options(run.trainer_options()));
    Goal::parse(target).expect_one_of(reported_metrics(programs.declare(form_of(*data.test, "test", false)).metrics));
  }
  catch_signals();
  return EpochLoop(*this, trainer, data, total, progress).run();
}

}  // namespace tutti::cli
