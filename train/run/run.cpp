#include "train/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/option_text.h"
#include "core/world/world.h"
#include "data/files/file_lock.h"
#include "train/run/goal.h"
#include "train/run/resume.h"
#include "train/run/run_log.h"
#include "train/run/run_option.h"
#include "train/run/saver.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

/// What to do if steps waited for data for more than 5 % of a second or more; else "".
std::string wait_hint(const Trainer& trainer, const Passes& passes, const std::string& data) {
  constexpr double share = 0.05, seconds = 1;
  if (trainer.data_wait() <= share || trainer.train_seconds() < seconds) return "";
  return fmt::format("the device waited for data {:.0f} % of the time: {}", 100 * trainer.data_wait(),
                     passes.advice(data));
}

/// Throws Error(internal) where the ranks' states are not the same.
void expect_same_state(World& world, Trainer& trainer) {
  std::vector<std::string> all = world.gather(trainer.state_hash());
  auto other = std::ranges::find_if(all, [&](const std::string& h) { return h != all[0]; });
  if (other != all.end())
    throw Error(Code::internal,
                fmt::format("after step {} the state of rank {} is {}, that of rank 0 {}: their devices do not compute "
                            "the same",
                            trainer.steps(), other - all.begin(), *other, all[0]),
                "use equal devices, drivers and libraries; `tutti parity` tests a device");
}

}  // namespace

Scalars EpochResult::scalars() const {
  Scalars all{score->metrics.begin(), score->metrics.end()};
  all["loss"] = score->loss;
  all["train_loss"] = loss;
  return all;
}

struct Run::Impl {
  RunSettings settings;
  bool writes;
  int64_t last_step = settings.steps > 0 ? settings.steps : unlimited;
  int64_t epochs = settings.steps > 0 ? unlimited : settings.epochs;  // of this run
  std::optional<FileLock> lock = {};                                  // two runs must not save to the same file
  std::optional<RunLog> log = {};
  size_t logged = 0;  // losses of the trainer

  bool logs() const { return log && log->failure().empty(); }

  void report_log(RunObserver& observer) {
    const std::string option = option_text("log-dir");
    if (std::string notice = log->take_notice(); !notice.empty()) observer.warn(fmt::format("{}: {}", option, notice));
    if (!log->failure().empty())
      observer.warn(fmt::format("{}: {}; the run continues without its log", option, log->failure()));
  }
};

/// Runs epochs until the end of the run.
class Run::Loop {
 public:
  Loop(Impl& run, Run& whole, Trainer& trainer, Passes& passes, const data::Source* test, RunObserver& observer)
      : run_(run),
        whole_(whole),
        settings_(run.settings),
        trainer_(trainer),
        passes_(passes),
        test_(test),
        observer_(observer),
        world_(trainer.options().world.get()),
        goal_(Goal::parse(settings_.target)),
        saver_(settings_.checkpoint, settings_.keep, settings_.keep_best),
        due_(settings_.save_every, trainer.steps()) {
    if (test && !settings_.target.empty()) goal_.expect_one_of(trainer.metrics(*test));
    if (trainer.options().plateau) expect_evaluation(settings_, "schedule", "plateau");
    run_.logged = trainer.losses().size();
    saver_.began_from(trainer.loaded().path);
    const std::map<std::string, std::string>& loaded = trainer.loaded().metadata;
    if (trainer.steps() == trainer.first_step() && loaded.contains("best")) best_.restore(loaded.at("best"));
  }

  RunResult run() {
    if (trainer_.steps() == trainer_.first_step())
      if (std::string w = threads_warning(trainer_.loaded().metadata, trainer_.device(), trainer_.options());
          !w.empty())
        observer_.warn(w);
    while (!done() && !ending()) {
      try {
        train_epoch();
        end_epoch();
      } catch (const NotFinite& e) {
        whole_.log_steps(trainer_, last_, observer_);
        throw NotFinite(e.step, e.what(), with_last_saved(e.remedy));
      }
    }
    finish();
    return std::move(out_);
  }

 private:
  bool at_limit() const { return trainer_.steps() >= run_.last_step || std::ssize(out_.history) >= run_.epochs; }
  bool done() const { return at_limit() || out_.converged || out_.on_target; }

  /// Whether the observer ends the run; with other ranks what all of them agreed on last.
  bool ending() { return world_ ? ending_ : observer_.stop(); }

  /// Settles what each rank decides by itself, its signals and how full its disk is: true where any rank says so.
  bool any(bool x) { return world_ ? world_->any(x) : x; }
  void settle_ending() { ending_ = any(observer_.stop()); }

  /// What other ranks' messages say where they wait for this one.
  void doing(const char* what) {
    if (world_) world_->at(trainer_.steps(), what);
  }

  /// The score that decides: where each rank has its own, that of rank 0.
  EvalResult of_rank_0(EvalResult score) {
    if (!world_ || !trainer_.options().local_evaluation) return score;
    std::vector<double> all{score.loss};
    for (const auto& [name, x] : score.metrics) all.push_back(x);
    world_->broadcast(std::as_writable_bytes(std::span(all)));
    size_t next = 0;
    score.loss = all[next++];
    for (auto& [name, x] : score.metrics) x = all[next++];
    return score;
  }

  std::string with_last_saved(const std::string& remedy) {
    const std::string& file = saver_.last_saved();
    if (file.empty()) return remedy;
    return fmt::format("{}{}the last good checkpoint is {}", remedy, remedy.empty() ? "" : "; ", file);
  }

  /// Warns once that something could not be saved.
  void tell(const std::optional<Error>& failure) {
    if (std::exchange(told_, failure.has_value()) || !failure) return;
    observer_.warn(fmt::format("not saved: {}\n  try: {}{}the run continues and tries again at the next save",
                               failure->what(), failure->remedy, failure->remedy.empty() ? "" : "; "));
  }

  void save(bool best) {
    doing("saving");
    const bool due = !settings_.checkpoint.empty() && (best || !settings_.only_best);
    if (due && (run_.writes || trainer_.sharded())) {
      std::map<std::string, std::string> metadata = observer_.metadata();
      metadata["best"] = best_.text();
      Checkpoint state = trainer_.snapshot(settings_.checkpoint, metadata);
      if (run_.writes) saver_.save(std::move(state), trainer_.steps(), best);
    }
    other_failure_.reset();
    try {
      observer_.save(trainer_);
    } catch (const Error& e) {
      tell(other_failure_ = e);
    }
  }

  /// Callback after losses were read; returning false stops.
  bool watch(const Progress& p) {
    observer_.progress(p);
    last_ = p;
    whole_.log_steps(trainer_, p, observer_);
    if (!other_failure_) tell(saver_.failure());
    return !observer_.stop() && !due_.now();
  }

  /// Trains to the end of the epoch or the run, or until the observer ends it; saves checkpoints that are due.
  void train_epoch() {
    began_ = Clock::now();
    epoch_ = {.epoch = passes_.begin()};
    observer_.epoch_begins(epoch_.epoch, passes_.steps());
    double loss = 0, with_loss = 0, seconds = 0;
    int64_t first = trainer_.steps();
    do {
      TrainResult result =
          passes_.train(due_.steps_left(trainer_.steps(), run_.last_step), [&](const Progress& p) { return watch(p); });
      if (auto count = static_cast<double>(result.with_loss); count > 0) {
        loss += result.loss * count;
        with_loss += count;
      }
      if (result.steps > 0) seconds += static_cast<double>(result.steps) / result.samples_per_second;
      settle_ending();
      if (passes_.ended() || trainer_.steps() >= run_.last_step || ending()) break;
      if (any(saver_.full())) {  // training continues; saved once the queue has room
        if (!std::exchange(slow_disk_, true))
          observer_.warn(option_text("save-every", settings_.save_every) +
                         ": the disk is too slow; checkpoints are saved as often as possible");
        continue;
      }
      save(false);
      due_.restart(trainer_.steps());
    } while (true);
    auto steps = static_cast<double>(trainer_.steps() - first);
    epoch_.step = trainer_.steps();
    epoch_.loss = loss / with_loss;
    epoch_.samples_per_second = steps / seconds;
    run_steps_ += steps;
    run_seconds_ += seconds;
    epoch_.trained_seconds = run_seconds_ * static_cast<double>(trainer_.options().batch);
  }

  /// Evaluates unless the run is being ended. Returns whether the model is the best so far.
  bool judge() {
    if (ending()) return false;
    if (!test_) return lowest_.update(of_rank_0({.loss = epoch_.loss}).loss);
    doing("evaluation");
    epoch_.score = trainer_.evaluate(*test_);
    settle_ending();
    const EvalResult score = of_rank_0(*epoch_.score);
    trainer_.report_validation_loss(score.loss);
    const bool lowest = lowest_.update(score.loss), best = best_.update(score.loss);
    out_.converged = settings_.patience > 0 && best_.evaluations_since_best >= settings_.patience;
    out_.on_target = goal_.reached(score);
    return settings_.only_best ? lowest : best;
  }

  void end_epoch() {
    const bool best = judge();
    epoch_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    out_.history.push_back(epoch_);
    observer_.epoch(epoch_);
    if (epoch_.score && run_.logs()) {
      run_.log->epoch(epoch_.step, epoch_.scalars());
      run_.report_log(observer_);
    }
    if (world_) expect_same_state(*world_, trainer_);
    save(best);
    due_.restart(trainer_.steps());
  }

  void finish() {
    try {
      saver_.finish();
      if (other_failure_) throw *other_failure_;
    } catch (const Error& e) {  // the options were valid, so this is not an input error
      throw Error(Code::internal, e.what(), with_last_saved(e.remedy));
    }
    out_.last_saved = saver_.last_saved();
    out_.saved = saver_.wrote();
    out_.stopped = !done();
    out_.evaluations_since_best = best_.evaluations_since_best;
    if (!out_.history.empty()) out_.seconds = out_.history.back().trained_seconds;
    if (run_seconds_ > 0) out_.samples_per_second = run_steps_ / run_seconds_;
    out_.hint = wait_hint(trainer_, passes_, settings_.data);
    if (!out_.history.empty()) trainer_.check_memory();
  }

  Impl& run_;
  Run& whole_;
  const RunSettings& settings_;
  Trainer& trainer_;
  Passes& passes_;
  const data::Source* test_;
  RunObserver& observer_;
  World* world_;
  Goal goal_;
  Saver saver_;
  SaveClock due_;
  Best best_, lowest_;  // of all runs that resumed each other, and of this run
  Progress last_;
  EpochResult epoch_;  // the current one
  Clock::time_point began_;
  RunResult out_;
  std::optional<Error> other_failure_;  // of the observer's save()
  bool told_ = false, slow_disk_ = false, ending_ = false;
  double run_steps_ = 0, run_seconds_ = 0;  // of all epochs; run_seconds_ sums steps / (samples per second)
};

Run::Run(RunSettings settings, bool writes) : impl_(new Impl{std::move(settings), writes}) {
  const RunSettings& s = impl_->settings;
  check(s);
  if (!writes) return;
  if (!s.checkpoint.empty()) impl_->lock.emplace(s.checkpoint);
  if (!s.log_dir.empty()) impl_->log.emplace(s.log_dir, s.norms);
}
Run::~Run() = default;

void Run::end_at(int64_t steps) { impl_->last_step = steps, impl_->epochs = unlimited; }

RunResult Run::train(Trainer& trainer, Passes& passes, const data::Source* test, RunObserver& observer) {
  return Loop(*impl_, *this, trainer, passes, test, observer).run();
}

void Run::log_steps(Trainer& trainer, const Progress& p, RunObserver& observer) {
  const std::vector<Norms> norms = trainer.take_norms();
  const bool logs = impl_->logs();
  if (logs || observer.reads_steps()) {
    auto memory = static_cast<double>(trainer.peak_bytes());
    const std::vector<float>&losses = trainer.losses(), &gradient_norms = trainer.gradient_norms();
    for (size_t& i = impl_->logged; i < losses.size(); ++i) {
      int64_t step = trainer.first_step() + static_cast<int64_t>(i);
      Scalars scalars{{"loss", losses[i]},
                      {"learning_rate", trainer.learning_rate(step)},
                      {"samples_per_s", p.samples_per_second},
                      {"memory_bytes", memory}};
      if (i < gradient_norms.size()) scalars["gradient_norm"] = gradient_norms[i];
      if (observer.reads_steps()) observer.step(step + 1, scalars);
      if (logs) impl_->log->step(step + 1, scalars);
    }
  }
  for (const Norms& n : norms) {
    Scalars scalars;
    for (const auto& [name, x] : n.gradient) scalars.emplace("grad_norm/" + name, x);
    for (const auto& [name, x] : n.weight) scalars.emplace("weight_norm/" + name, x);
    if (logs && impl_->settings.norms) impl_->log->norms(n.step, scalars);
    observer.norms(n);
  }
  if (logs) impl_->report_log(observer);
}

}  // namespace tutti
