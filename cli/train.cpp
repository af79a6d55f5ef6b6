// tutti train: trains a model, shows progress, saves checkpoints.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "cli/number.h"
#include "cli/output_file.h"
#include "cli/overfit.h"
#include "cli/print.h"
#include "cli/profile.h"
#include "cli/progress.h"
#include "cli/report/run_report.h"
#include "cli/run_file.h"
#include "cli/run_options.h"
#include "cli/saver.h"
#include "cli/signals.h"
#include "cli/top/running.h"
#include "core/base/text.h"
#include "data/batch_loader.h"
#include "data/files/checkpoint.h"
#include "data/files/file_lock.h"
#include "train/fit.h"
#include "train/plan.h"
#include "train/run_log.h"
#include "train/weights.h"

namespace tutti::cli {
namespace {

struct TrainCommand {
  RunOptions run;
  RunFile file;
  RunReport page;
  Profile profile;
  std::string checkpoint, resume, adapters, merged, log_dir;
  std::string save_every;
  int64_t keep = 1, patience = 0, norms = 0;
  std::optional<int64_t> overfit;
  bool json = false, quiet = false, no_eval = false, keep_best = false, nan_check = false;

  /// What training came to.
  struct Outcome {
    TrainResult result;  // of the last epoch
    EvalResult score;
    bool scored = false, cut_short = false;
    bool converged = false;  // the test loss has not fallen for --patience epochs
    int epochs = 0;
    double rate = 0;   // samples per second
    std::string good;  // the last good checkpoint
  };

  int operator()();
  /// Trains and evaluates epoch by epoch until the end or a signal, and saves after each.
  Outcome train(Trainer& trainer, const data::Sources& data, int64_t total, ProgressLine& progress);
  /// Adds the losses that were read since `logged` to the log, which moves on; says once where it cannot.
  void log_steps(Trainer& trainer, const Progress& p, size_t& logged, ProgressLine& progress);
  /// Says what the log has to say of itself.
  void tell_log(ProgressLine& progress);
  void log_epoch(const Trainer& trainer, const Outcome& o, ProgressLine& progress);
  /// What --json prints.
  nlohmann::ordered_json document(const Device& device, Trainer& trainer, int64_t per_epoch, const Outcome& o) const;
  /// Prints the document or the summary, and writes the page; returns the exit code.
  int report(const Device& device, Trainer& trainer, const data::Sources& data, const Outcome& o);
  bool write_page(Trainer& trainer, const data::Sources& data, const nlohmann::ordered_json& result, const Outcome& o);
  /// What --overfit came to; returns the exit code.
  int report(const Device& device, const Trainer& trainer, const Overfit& o) const;
  /// Throws Error(invalid) for options that --overfit has no use for.
  void check_overfit() const;
  /// Writes what --adapters and --merged ask for.
  void save_weights(Trainer& trainer) const;
  int64_t steps_per_epoch(const data::Source& set) const;
  int64_t total_steps(const data::Source& set) const;
  std::string resume_command() const;
  void tell_wait(const Trainer& trainer, const data::Source& set) const;

 private:
  std::optional<RunLog> log_;
  Best best_;
  int64_t begun_at_ = 0;   // steps that were done before
  Progress last_;          // seen
  int64_t failed_at_ = 0;  // the step whose loss was not finite
};

int64_t TrainCommand::steps_per_epoch(const data::Source& set) const {
  return set.size() / run.batch + (run.keep_last && set.size() % run.batch != 0);
}

int64_t TrainCommand::total_steps(const data::Source& set) const {
  int64_t per_epoch = steps_per_epoch(set);
  if (per_epoch == 0)
    throw invalid(
        fmt::format("--batch {}: the training set of --data {} has {} samples", run.batch, run.data, set.size()),
        fmt::format("--batch {} or less", set.size()));
  const int64_t most = std::numeric_limits<int32_t>::max() / run.accumulate;  // parts are numbered, too
  if (run.steps > most || (run.steps == 0 && run.epochs > most / per_epoch))
    throw invalid(fmt::format("{}: more than 2^31 - 1 steps", run.steps > 0 ? fmt::format("--steps {}", run.steps)
                                                                            : fmt::format("--epochs {}", run.epochs)),
                  "ask for fewer");
  return run.steps > 0 ? run.steps : run.epochs * per_epoch;
}

std::string TrainCommand::resume_command() const {
  std::string text = "tutti train --resume " + file_word(checkpoint);
  if (run.device != "auto") text += " --device " + shell_word(run.device);
  if (!run.fallback.empty()) text += " --fallback " + run.fallback;
  if (run.threads > 0) text += fmt::format(" --threads {}", run.threads);
  if (run.workers) text += fmt::format(" --workers {}", *run.workers);
  if (run.prefetch > 0) text += fmt::format(" --prefetch {}", run.prefetch);
  return text;
}

/// A hint on stderr where the device waited for data, and long enough to tell.
void TrainCommand::tell_wait(const Trainer& trainer, const data::Source& set) const {
  constexpr double share = 0.05, seconds = 1;
  if (quiet || trainer.data_wait() <= share || trainer.train_seconds() < seconds) return;
  auto cores = static_cast<int>(std::thread::hardware_concurrency());
  int workers = run.workers.value_or(data::usual_workers(set, run.augment != "none"));
  print_err("the device waited for data {:.0f} % of the time: ", 100 * trainer.data_wait());
  if (!set.parallel())
    print_err("these data are read by one thread; pack them: tutti data {} --output FILE.npz\n", shell_word(run.data));
  else if (workers < cores)
    print_err("read them with more threads, --workers {} (now {})\n", cores, workers);
  else
    print_err(
        "all cores read already; read further ahead (--prefetch {}), or pack the data so that they need no "
        "decoding: tutti data {} --output FILE.npz\n",
        4 * std::max(workers, 1), shell_word(run.data));
}

/// "  test loss 0.4428  accuracy 83.89 %".
std::string score_text(const EvalResult& score) {
  std::string text = fmt::format("  test loss {:.4f}", score.loss);
  for (const auto& [name, value] : score.metrics) text += fmt::format("  {} {:.2f} %", name, 100 * value);
  return text;
}

void TrainCommand::save_weights(Trainer& trainer) const {
  if (adapters.empty() && merged.empty()) return;
  HostTensors all;
  for (const nn::Parameter& p : trainer.model_states()) all.emplace(p.name, trainer.state(p.name));
  nn::Lora lora = run.adapters().value_or(nn::Lora{});
  if (!adapters.empty()) write_adapters(adapters, all, lora);
  if (!merged.empty()) write_checkpoint(merged, {tutti::merged(all, lora), {{"format", "pt"}}});
}

void TrainCommand::log_steps(Trainer& trainer, const Progress& p, size_t& logged, ProgressLine& progress) {
  std::vector<Norms> norms = trainer.take_norms();
  bool logs = log_ && log_->failure().empty();
  if (!logs && !page.asked()) return;
  auto memory = static_cast<double>(trainer.peak_bytes());
  for (; logged < trainer.losses().size(); ++logged) {
    int64_t step = begun_at_ + static_cast<int64_t>(logged);
    Scalars scalars{{"loss", trainer.losses()[logged]},
                    {"learning_rate", trainer.learning_rate(step)},
                    {"samples_per_s", p.samples_per_second},
                    {"memory_bytes", memory}};
    if (logged < trainer.gradient_norms().size()) scalars["gradient_norm"] = trainer.gradient_norms()[logged];
    if (page.asked()) page.step(step + 1, scalars);
    if (logs) log_->step(step + 1, scalars);
  }
  if (!logs) return;
  for (const Norms& n : norms) {
    Scalars scalars;
    for (const auto& [name, x] : n.gradient) scalars.emplace("grad_norm/" + name, x);
    for (const auto& [name, x] : n.weight) scalars.emplace("weight_norm/" + name, x);
    log_->norms(n.step, scalars);
  }
  tell_log(progress);
}

void TrainCommand::tell_log(ProgressLine& progress) {
  if (std::string notice = log_->take_notice(); !notice.empty()) progress.warn(fmt::format("--log-dir: {}", notice));
  if (!log_->failure().empty())
    progress.warn(fmt::format("--log-dir: {}; the run goes on without its log", log_->failure()));
}

void TrainCommand::log_epoch(const Trainer& trainer, const Outcome& o, ProgressLine& progress) {
  if (!o.scored) return;
  Scalars scalars{o.score.metrics.begin(), o.score.metrics.end()};
  scalars["loss"] = o.score.loss;
  scalars["train_loss"] = o.result.loss;
  if (page.asked()) page.evaluation(trainer.steps(), scalars);
  if (!log_ || !log_->failure().empty()) return;
  log_->epoch(trainer.steps(), scalars);
  tell_log(progress);
}

TrainCommand::Outcome TrainCommand::train(Trainer& trainer, const data::Sources& data, int64_t total,
                                          ProgressLine& progress) {
  int64_t per_epoch = steps_per_epoch(*data.train);
  catch_signals();
  Outcome out;
  Saver saver(checkpoint, keep, keep_best);
  saver.began_from(resume);
  auto with_good = [&](const std::string& remedy) {
    return saver.good().empty() ? remedy : fmt::format("{}; the last good checkpoint is {}", remedy, saver.good());
  };
  bool told = false;  // that something could not be saved
  auto tell = [&](const std::optional<Error>& failure) {
    if (std::exchange(told, failure.has_value()) || !failure) return;
    progress.warn(fmt::format("not saved: {}\n  try: {}{}the run goes on and tries again when the next save is due",
                              failure->what(), failure->remedy, failure->remedy.empty() ? "" : "; "));
  };
  std::optional<Error> weights_failure;
  auto save = [&](bool best) {
    if (!checkpoint.empty())
      saver.save(
          trainer.snapshot(checkpoint, {{"run", nlohmann::json(run.remembered()).dump()}, {"best", best_.text()}}),
          trainer.steps(), best);
    weights_failure.reset();
    try {
      save_weights(trainer);
    } catch (const Error& e) {
      tell(weights_failure = e);
    }
  };
  std::vector<double> rates;
  size_t logged = 0;
  RunningNote note;
  std::string size = run.definition().size(run.size).name;
  SaveClock due(save_every, trainer.steps());
  bool slow_disk = false;
  auto train_epoch = [&] {  // to its end, the run's, or a signal; saves on the way where that is due
    double loss = 0, seconds = 0;
    int64_t first = trainer.steps();
    do {
      out.result = trainer.train(*data.train, due.steps_left(trainer.steps(), total), [&](const Progress& p) {
        progress.show(p);
        last_ = p;
        log_steps(trainer, p, logged, progress);
        if (!weights_failure) tell(saver.failure());
        note.say({{"device", trainer.device().id},
                  {"model", run.model + ":" + size},
                  {"step", p.step},
                  {"steps", total},
                  {"loss", p.loss},
                  {"samples_per_s", p.samples_per_second},
                  {"batch", run.batch},
                  {"memory_bytes", trainer.peak_bytes()}});
        catch_signals();
        return !interrupted() && !due.now();
      });
      auto steps = static_cast<double>(out.result.steps);
      loss += out.result.loss * steps;
      seconds += steps / out.result.samples_per_second;
      bool ended = trainer.steps() % per_epoch == 0 || trainer.steps() == total;
      if (ended || interrupted()) break;
      if (saver.full()) {  // steps go on, and it is saved once there is room
        if (!std::exchange(slow_disk, true))
          progress.warn(
              fmt::format("--save-every {}: the disk is slower than that; saved as often as it can", save_every));
        continue;
      }
      save(false);
      due.restart(trainer.steps());
    } while (true);
    auto steps = static_cast<double>(trainer.steps() - first);
    out.result.loss = loss / steps;
    out.result.samples_per_second = steps / seconds;
  };
  while (trainer.steps() < total && !interrupted() && !out.converged) {
    try {
      train_epoch();
      rates.push_back(out.result.samples_per_second);
      out.scored = !no_eval && !interrupted();
      if (out.scored) {
        out.score = trainer.evaluate(*data.test);
        trainer.look(out.score.loss);
        best_.look(out.score.loss);
        out.converged = patience > 0 && best_.since >= patience;
      }
      progress.print(fmt::format("epoch {}  step {}  loss {:.4f}{}  {}", (trainer.steps() + per_epoch - 1) / per_epoch,
                                 trainer.steps(), out.result.loss, out.scored ? score_text(out.score) : "",
                                 rate_text(out.result.samples_per_second)));
      log_epoch(trainer, out, progress);
      save(out.scored && best_.since == 0);
      due.restart(trainer.steps());
    } catch (const NotFinite& e) {
      progress.clear();
      log_steps(trainer, last_, logged, progress);
      failed_at_ = e.step;
      throw Error(Code::internal, e.what(), with_good(e.remedy));
    }
    ++out.epochs;
  }
  try {
    saver.finish();
    if (weights_failure) throw *weights_failure;
  } catch (const Error& e) {  // the options were good, so it is no bad input
    throw Error(Code::internal, e.what(), with_good(e.remedy));
  }
  out.good = saver.good();
  release_signals();
  if (out.converged)
    progress.print(fmt::format("the test loss has not fallen for {} epochs (--patience): done", best_.since));
  out.cut_short = trainer.steps() < total && !out.converged;
  if (out.epochs == 0 && !no_eval && !out.cut_short) {  // resumed at its end
    out.score = trainer.evaluate(*data.test);
    out.scored = true;
  }
  trainer.check_memory();
  for (double r : rates) out.rate += r / static_cast<double>(rates.size());
  return out;
}

nlohmann::ordered_json TrainCommand::document(const Device& device, Trainer& trainer, int64_t per_epoch,
                                              const Outcome& o) const {
  std::optional<double> scale = trainer.loss_scale();
  nlohmann::json metrics = nlohmann::json::object();
  for (const auto& [name, value] : o.score.metrics) metrics[name] = value;
  auto accuracy = o.score.metrics.find("accuracy");
  const int64_t steps = failed_at_ > 0 ? failed_at_ : trainer.steps();
  bool has_accuracy = o.scored && accuracy != o.score.metrics.end();
  nlohmann::ordered_json out{{"device", device.id},
                             {"model", run.model},
                             {"size", run.definition().size(run.size).name},
                             {"parameters", trainer.parameter_count()},
                             {"steps", steps},
                             {"epochs", static_cast<double>(steps) / static_cast<double>(per_epoch)},
                             {"loss", o.epochs > 0 ? nlohmann::json(o.result.loss) : nlohmann::json()},
                             {"accuracy", has_accuracy ? nlohmann::json(accuracy->second) : nlohmann::json()},
                             {"metrics", o.scored ? metrics : nlohmann::json()},
                             {"test_loss", o.scored ? nlohmann::json(o.score.loss) : nlohmann::json()},
                             {"samples_per_s", o.rate},
                             {"step_ms_median", trainer.step_ms_median()},
                             {"compile_ms", trainer.compile_ms()},
                             {"data_wait", trainer.data_wait()},
                             {"peak_bytes", trainer.peak_bytes()},
                             {"planned_bytes", trainer.planned_bytes()},
                             {"state_hash", trainer.state_hash()},
                             {"seed", run.seed},
                             {"device_name", device.name},
                             {"device_reason", device.reason},
                             {"batch", run.batch},
                             {"accumulate", run.accumulate},
                             {"optimizer", run.optimizer},
                             {"data", run.data},
                             {"precision", run.precision},
                             {"loss_scale", scale ? nlohmann::json(*scale) : nlohmann::json()},
                             {"skipped_steps", trainer.skipped_steps()},
                             {"checkpoint", checkpoint},
                             {"stopped", o.cut_short},
                             {"converged", o.converged},
                             {"losses", trainer.losses()}};
  run.tell_fallback(trainer, out);
  profile.tell(out);
  return out;
}

int TrainCommand::report(const Device& device, Trainer& trainer, const data::Sources& data, const Outcome& o) {
  nlohmann::ordered_json out = document(device, trainer, steps_per_epoch(*data.train), o);
  if (json)
    print_json(out);
  else {
    std::optional<double> scale = trainer.loss_scale();
    fmt::print("device     {} ({})\nmodel      {}, {} parameters\nsteps      {}, {:.3f} ms each (median), {}\n",
               device.id, device.name, run.model, trainer.parameter_count(), trainer.steps(), trainer.step_ms_median(),
               rate_text(o.rate));
    if (o.scored && o.score.metrics.empty()) fmt::print("test loss  {:.6f}\n", o.score.loss);
    for (const auto& [name, value] : o.scored ? o.score.metrics : std::map<std::string, double>{})
      fmt::print("{:<10} {:.2f} % (test loss {:.4f})\n", name, 100 * value, o.score.loss);
    fmt::print("memory     {} planned, {} used at most\nstate      {}\n", bytes_text(trainer.planned_bytes()),
               bytes_text(trainer.peak_bytes()), trainer.state_hash());
    if (run.precision != "f32")
      fmt::print("precision  {}{}\n", run.precision,
                 scale ? fmt::format(", loss scale {}, {} steps skipped", *scale, trainer.skipped_steps()) : "");
    fmt::print("{}", run.tell_fallback(trainer));
    if (o.good == checkpoint && !o.good.empty())
      fmt::print("saved      {}\nnext       {}\n", checkpoint,
                 o.cut_short ? resume_command() : "tutti eval " + file_word(checkpoint));
  }
  bool written = write_page(trainer, data, out, o);
  if (!o.cut_short) return written && profile.written() ? done : stopped;
  print_err("stopped after step {}; {}\n", trainer.steps(),
            checkpoint.empty() ? "nothing was saved (no --checkpoint)"
            : o.epochs == 0    ? "there was nothing to save yet"
                               : "go on with: " + resume_command());
  return stopped;
}

bool TrainCommand::write_page(Trainer& trainer, const data::Sources& data, const nlohmann::ordered_json& result,
                              const Outcome& o) {
  std::fflush(stdout);
  if (!no_eval) page.look(trainer, run, data);
  return page.write(result,
                    o.cut_short   ? fmt::format("stopped after step {}", trainer.steps())
                    : o.converged ? fmt::format("done: the test loss had not fallen for {} epochs", best_.since)
                                  : fmt::format("finished after {} steps", trainer.steps()),
                    trainer, run);
}

int TrainCommand::report(const Device& device, const Trainer& trainer, const Overfit& o) const {
  const char* verdict = o.interrupted ? "stopped" : o.passed ? "passed" : "failed";
  if (json)
    print_json({{"device", device.id},
                {"model", run.model},
                {"overfit", verdict},
                {"steps", trainer.steps()},
                {"first_loss", o.first},
                {"last_loss", o.last},
                {"goal", o.goal},
                {"reasons", o.reasons},
                {"losses", trainer.losses()}});
  else
    fmt::print("overfit    {}: one batch of {}, loss {:.6g} -> {:.6g} in {} steps (goal {:.3g})\n", verdict, run.batch,
               o.first, o.last, trainer.steps(), o.goal);
  for (const std::string& reason : o.reasons) print_err("  it may be that: {}\n", reason);
  return o.passed ? done : stopped;
}

void TrainCommand::check_overfit() const {
  if (!overfit) return;
  if (*overfit < 1) throw invalid(fmt::format("--overfit {}: steps at most", *overfit), "1 or more");
  for (const auto& [option, value] : {Target{"--resume", &resume},
                                      {"--checkpoint", &checkpoint},
                                      {"--adapters", &adapters},
                                      {"--merged", &merged},
                                      {"--report", &page.target()}})
    if (!value->empty())
      throw invalid(fmt::format("{} {}: --overfit is a test of the model, which saves nothing", option, *value),
                    "leave one of the two out");
}

int TrainCommand::operator()() try {
  file.apply();
  if (keep_best && no_eval)
    throw invalid("--keep-best: is chosen by the test loss", "leave one of --keep-best and --no-eval out");
  if (!resume.empty()) {
    run.recall(resume);
    if (checkpoint.empty()) checkpoint = resume;
  }
  run.validate();
  check_overfit();
  if (checkpoint == "-") throw invalid("--checkpoint -: a checkpoint does not go to stdout", "name a file");
  if (patience < 0 || (patience > 0 && no_eval))
    throw invalid(fmt::format("--patience {}: looks at the test loss", patience), "1 or more, without --no-eval");
  if (keep < 1) throw invalid(fmt::format("--keep {}: the newest checkpoint always stays", keep), "1 or more");
  if (checkpoint.empty() && (keep > 1 || keep_best || !save_every.empty()))
    throw invalid(fmt::format("{}: nothing is saved", keep_best  ? "--keep-best"
                                                      : keep > 1 ? "--keep"
                                                                 : "--save-every"),
                  "name a file: --checkpoint FILE");
  SaveClock(save_every, 0);
  page.check();
  profile.check();
  check_targets(std::array{Target{"--checkpoint", &checkpoint}, Target{"--merged", &merged},
                           Target{"--report", &page.target()}, Target{"--profile", &profile.target()}});
  if (!run.quantize.empty() && run.lora == 0 && run.freeze.empty())
    throw invalid(fmt::format("--quantize {}: all weights are trained", run.quantize),
                  "train adapters beside them: --lora 8");
  if (!adapters.empty() && run.lora == 0)
    throw invalid(fmt::format("--adapters {}: the run has none", adapters), "ask for some: --lora 8");
  std::optional<FileLock> lock;  // two runs that save to one file would undo each other's work
  if (!checkpoint.empty()) lock.emplace(checkpoint);
  if (norms < 0) throw invalid(fmt::format("--norms {}: a number of steps", norms), "0 or more");
  if (norms > 0 && log_dir.empty())
    throw invalid(fmt::format("--norms {}: they are written by --log-dir", norms), "name a folder: --log-dir DIR");
  if (!log_dir.empty()) log_.emplace(log_dir, norms > 0);
  Device device = select_device(run.device);
  if (!quiet) tell_lost_plugins();
  data::Sources data = run.read_data();
  int64_t total = total_steps(*data.train), per_epoch = steps_per_epoch(*data.train);
  if (overfit) total = *overfit;
  Task task = run.make_task(*data.train);
  run.check_recompute(*data.train, !quiet);
  TrainerOptions options = run.trainer_options(total);
  // Clipping computes it in any case; else it would cost a small model a tenth of its time.
  options.gradient_norm = (!log_dir.empty() || page.asked()) && (norms > 0 || options.clip_norm > 0);
  options.norms_every = norms;
  options.nan_check = nan_check;
  run.fit(options, device, task, data, !no_eval, !quiet);
  options.profiler = profile.make();
  Trainer trainer(device, task, options);
  if (resume.empty()) {
    run.start(trainer, *data.train);
  } else {
    trainer.load(resume);
    if (CheckpointHeader header = read_checkpoint_header(resume); header.metadata.contains("best"))
      best_.recall(header.metadata.at("best"));
    if (run.named("seed") && run.seed != trainer.seed())
      throw invalid(fmt::format("--seed {}: the run in {} has seed {}", run.seed, resume, trainer.seed()),
                    "leave --seed out: a resumed run keeps its own");
    run.seed = trainer.seed();
  }
  begun_at_ = trainer.steps();
  profile.start(total - begun_at_);
  ProgressLine progress(total, (total + per_epoch - 1) / per_epoch, run.batch, quiet);
  progress.print(fmt::format("{}: {} ({})", device.id, device.name, device.reason));
  if (!resume.empty())
    progress.print(fmt::format("resumed at step {} of {}, saves to {}", trainer.steps(), total, checkpoint));
  if (trainer.steps() >= total)
    progress.warn(
        fmt::format("nothing is left to train: {} steps are done; ask for more --steps or --epochs", trainer.steps()));

  if (overfit) {
    size_t logged = 0;
    Overfit o;
    try {
      o = cli::overfit(trainer, *data.train, run, *overfit, [&](const Progress& p) {
        progress.show(p);
        log_steps(trainer, p, logged, progress);
        return true;
      });
    } catch (const NotFinite& e) {
      progress.clear();
      throw Error(Code::internal, e.what(), e.remedy);
    }
    progress.clear();
    profile.finish(options.precision, run.threads, quiet);
    return report(device, trainer, o);
  }
  Outcome outcome;
  const data::Source* test = no_eval ? nullptr : data.test.get();
  try {
    if (page.asked()) page.memory(RunPlanner(device, task, options, *data.train, test).plan(run.batch));
    outcome = this->train(trainer, data, total, progress);
  } catch (const Error& e) {
    progress.clear();
    std::string remedy = e.remedy;
    try {
      Outcome none;
      none.cut_short = true;
      none.rate = last_.samples_per_second;
      if (page.asked() && trainer.steps() > 0)
        page.write(document(device, trainer, per_epoch, none), fmt::format("failed: {}", e.what()), trainer, run);
      bool too_large = e.code == Code::no_memory && device.memory_free > 0 && trainer.steps() == 0;
      auto ways = too_large ? ways_to_fit(device, task, options, *data.train, test, device.memory_free)
                            : std::vector<std::string>();
      if (!ways.empty()) remedy = fmt::format("train the same batch in less memory: {}", fmt::join(ways, ", or "));
    } catch (const Error&) {  // a lost device, say: what ended the run is what counts
    }
    throw Error(e.code, e.what(), remedy);
  }
  profile.finish(options.precision, run.threads, quiet);
  page.profile(profile.rows());
  tell_wait(trainer, *data.train);
  return report(device, trainer, data, outcome);
} catch (const Error& e) {
  file.rethrow(e);
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("train", "Train a model; the whole step runs on the device");
  static TrainCommand command;
  command.run.add_to(*sub);
  command.file.add_to(*sub);
  command.profile.add_to(*sub);
  sub->add_option("--checkpoint", command.checkpoint, "Save here (safetensors) after every epoch and when interrupted")
      ->group("Files");
  sub->add_option("--resume", command.resume,
                  "Go on from this checkpoint, with its options unless others are given, and save to it unless "
                  "--checkpoint names another")
      ->group("Files");
  sub->add_option("--adapters", command.adapters, "Save the adapters of --lora in this folder, as PEFT does")
      ->group("Files");
  sub->add_option("--merged", command.merged, "Save the weights alone here (safetensors), adapters merged into them")
      ->group("Files");
  sub->add_option("--log-dir", command.log_dir,
                  "Append the run's curves to files in this folder: TensorBoard's events, steps.csv and epochs.csv")
      ->group("Files");
  sub->add_option(
         "--norms", command.norms,
         "With --log-dir: norms of every parameter and its gradient each so many steps (0: none), to norms.csv, and of "
         "all gradients together every step, to steps.csv")
      ->check(whole<int64_t>)
      ->group("Files");
  command.page.add_to(*sub);
  command.run.remember(
      sub->add_option("--save-every", command.save_every,
                      "Save within an epoch as well: every so many steps (500), or so much time (90s, 10m, 2h)")
          ->group("Files"));
  command.run.remember(sub->add_option("--keep", command.keep,
                                       "How many of the newest checkpoints stay: beside FILE those before it, as "
                                       "NAME.step-N.EXT")
                           ->check(whole<int64_t>)
                           ->group("Files"));
  command.run.remember(sub->add_flag("--keep-best", command.keep_best,
                                     "Keep the checkpoint of the lowest test loss too, as NAME.best.EXT")
                           ->group("Files"));
  command.run.remember(sub->add_option("--patience", command.patience,
                                       "Stop when the test loss has not fallen for so many epochs (0: never)")
                           ->check(whole<int64_t>)
                           ->group("Training"));
  sub->add_flag("--nan-check", command.nan_check,
                "When a loss or a weight is NaN or infinite, name the node that made it and the ranges of its inputs. "
                "Costs up to 5 % of the time and a copy of the state in host memory; then some steps run again")
      ->group("Training");
  sub->add_option("--overfit", command.overfit,
                  "Train on one batch again and again, to see whether the model learns it by heart: passed (exit code "
                  "0) when the loss falls to 1 % of the first within so many steps, else failed (1). No model with "
                  "dropout, noise or a loss that cannot reach 0 has to pass")
      ->expected(0, 1)
      ->default_str("500")
      ->check([](const std::string& text) {
        return parse_number<int64_t>(text) ? ""
                                           : fmt::format("'{}' is no number of steps (name the model first)", text);
      })
      ->group("Training");
  sub->add_flag("--deterministic")
      ->description("Changes nothing: a run always gives the same bits on the same device")
      ->group("Training");
  sub->add_flag("--no-eval", command.no_eval, "Do not evaluate on the test set")->group("Training");
  sub->add_flag("--quiet", command.quiet, "No progress on stderr");
  add_json_flag(*sub, command.json);
  sub->footer("Example: tutti train mlp --layers 784,512,256,10 --dropout 0.2 --epochs 5 --checkpoint run.safetensors");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
