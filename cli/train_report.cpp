// Output of a training run at its end.
#include <fmt/format.h>

#include "cli/metrics.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/train_command.h"
#include "core/base/cpus.h"
#include "core/base/text.h"
#include "data/batch_loader.h"
#include "data/files/checkpoint.h"

namespace tutti::cli {
namespace {

/// Number of epochs after `steps` steps.
double epochs_done(const Trainer& trainer, int64_t steps, int64_t per_epoch) {
  const Position& at = trainer.position();
  int64_t in_epoch = at.sample / std::max<int64_t>(at.batch, 1) - (trainer.steps() - steps);
  return static_cast<double>(at.epoch) + static_cast<double>(in_epoch) / static_cast<double>(per_epoch);
}

/// What --target came to: null without it.
nlohmann::ordered_json goal_document(const std::string& target, const Trainer& trainer,
                                     const TrainCommand::Outcome& o) {
  if (target.empty()) return {};
  nlohmann::ordered_json out{{"target", target}, {"reached", o.on_target}};
  if (o.on_target) {
    out["step"] = trainer.steps();
    const Position& at = trainer.position();
    out["samples"] = at.epoch * at.samples + at.sample;
    out["seconds"] = o.seconds;
  }
  return out;
}

}  // namespace

std::string TrainCommand::resume_command() const {
  std::string text = ranks.alone() ? "" : fmt::format("mpiexec -n {} ", ranks.ranks());
  text += "tutti train --resume " + file_word(checkpoint);
  if (run.device != "auto") text += " --device " + shell_word(run.device);
  if (!run.fallback.empty()) text += " --fallback " + run.fallback;
  if (run.trainer.shard != "none") text += " --shard " + run.trainer.shard;
  if (run.threads > 0) text += fmt::format(" --threads {}", run.threads);
  if (run.trainer.workers >= 0) text += fmt::format(" --workers {}", run.trainer.workers);
  if (run.trainer.prefetch > 0) text += fmt::format(" --prefetch {}", run.trainer.prefetch);
  return text;
}

/// Prints a hint to stderr if the device waited noticeably long for data.
void TrainCommand::print_wait(const Trainer& trainer, const data::Source& set) const {
  constexpr double share = 0.05, seconds = 1;
  if (quiet || trainer.data_wait() <= share || trainer.train_seconds() < seconds) return;
  int cores = usable_cpus();
  int workers =
      run.trainer.workers >= 0 ? run.trainer.workers : data::usual_workers(set, run.trainer.augment != "none");
  print_err("the device waited for data {:.0f} % of the time: ", 100 * trainer.data_wait());
  if (!set.parallel())
    print_err("this data is read by one thread; pack it: tutti data {} --output FILE.npz\n", shell_word(run.data));
  else if (workers < cores)
    print_err("read it with more threads: --workers {} (now {})\n", cores, workers);
  else
    print_err(
        "all cores are already used for reading; read further ahead (--prefetch {}), or pack the data so that it needs "
        "no decoding: tutti data {} --output FILE.npz\n",
        4 * std::max(workers, 1), shell_word(run.data));
}

nlohmann::ordered_json TrainCommand::document(const Device& device, Trainer& trainer, int64_t per_epoch,
                                              const Outcome& o) const {
  std::optional<double> scale = trainer.loss_scale();
  nlohmann::json metrics = nlohmann::json::object();
  for (const auto& [name, value] : o.score.metrics) metrics[name] = value;
  auto accuracy = o.score.metrics.find("accuracy");
  const int64_t steps = failed_at > 0 ? failed_at : trainer.steps();
  bool has_accuracy = o.scored && accuracy != o.score.metrics.end();
  nlohmann::ordered_json out{{"device", device.id},
                             {"model", run.model},
                             {"size", run.definition().size(run.model_values.size).name},
                             {"parameters", trainer.parameter_count()},
                             {"steps", steps},
                             {"epochs", epochs_done(trainer, steps, per_epoch)},
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
                             {"state_hash", o.failed ? "" : trainer.state_hash()},
                             {"seed", run.trainer.seed},
                             {"device_name", device.name},
                             {"device_reason", device.reason},
                             {"batch", run.trainer.batch},
                             {"accumulate", run.trainer.accumulate},
                             {"optimizer", run.optimizer},
                             {"data", run.data},
                             {"precision", run.text("precision")},
                             {"loss_scale", scale ? nlohmann::json(*scale) : nlohmann::json()},
                             {"skipped_steps", trainer.skipped_steps()},
                             {"checkpoint", checkpoint},
                             {"saved", o.saved},
                             {"adapters", wrote_weights ? adapters : ""},
                             {"merged", wrote_weights ? merged : ""},
                             {"stopped", o.cut_short},
                             {"converged", o.converged},
                             {"target", goal_document(target, trainer, o)},
                             {"history", o.history},
                             {"world", o.failed ? nlohmann::ordered_json() : ranks.document(run.trainer, trainer)},
                             {"options", run.remembered()},
                             {"losses", trainer.losses()}};
  run.report_fallback(trainer, out);
  profile.tell(out);
  return out;
}

int TrainCommand::report(const Device& device, Trainer& trainer, const data::Sources& data, const Outcome& o) {
  nlohmann::ordered_json out = document(device, trainer, steps_per_epoch(*data.train), o);
  if (!ranks.writes()) return o.cut_short ? stopped : done;
  if (const std::string file = log_dir + "/run.json"; !log_dir.empty())
    try_write_target({"--log-dir", &file}, json_text(out));
  if (json)
    print_json(out);
  else {
    std::optional<double> scale = trainer.loss_scale();
    fmt::print("device     {} ({})\nmodel      {}, {} parameters\nsteps      {}, {:.3f} ms each (median), {}\n",
               device.id, device.name, run.model, trainer.parameter_count(), trainer.steps(), trainer.step_ms_median(),
               rate_text(o.rate));
    if (o.scored && o.score.metrics.empty()) fmt::print("test loss  {:.6f}\n", o.score.loss);
    for (const auto& [name, value] : o.scored ? o.score.metrics : std::map<std::string, double>{})
      fmt::print("{:<10} {} (test loss {:.4f})\n", name, metric_text(name, value), o.score.loss);
    fmt::print("memory     {} planned, {} used at most\nstate      {}\n", bytes_text(trainer.planned_bytes()),
               bytes_text(trainer.peak_bytes()), out.at("state_hash").get<std::string>());
    if (run.text("precision") != "f32")
      fmt::print("precision  {}{}\n", run.text("precision"),
                 scale ? fmt::format(", loss scale {}, {} steps skipped", *scale, trainer.skipped_steps()) : "");
    if (!ranks.alone())
      fmt::print("ranks      {} ({}), {} sent by each, {:.1f} s waited\n", ranks.ranks(), run.trainer.reduce,
                 bytes_text(ranks.world()->bytes_sent()), ranks.world()->seconds_waited());
    fmt::print("{}", run.fallback_text(trainer));
    if (!adapters.empty() && wrote_weights) fmt::print("adapters   {}\n", adapters);
    if (!merged.empty() && wrote_weights) fmt::print("merged     {}\n", merged);
    if (o.saved) fmt::print("saved      {}\n", checkpoint);
    if (o.good == checkpoint && !o.good.empty())
      fmt::print("next       {}\n", o.cut_short ? resume_command() : "tutti eval " + file_word(checkpoint));
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
                    o.cut_short ? fmt::format("stopped after step {}", trainer.steps())
                    : o.converged
                        ? fmt::format("done: the test loss had not fallen for {} epochs", best.evaluations_since_best)
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
    fmt::print("overfit    {}: one batch of {}, loss {:.6g} -> {:.6g} in {} steps (goal {:.3g})\n", verdict,
               run.trainer.batch, o.first, o.last, trainer.steps(), o.goal);
  for (const std::string& reason : o.reasons) print_err("  possible reason: {}\n", reason);
  return o.passed ? done : stopped;
}

}  // namespace tutti::cli
