// Output of a training run at its end.
#include <fmt/format.h>

#include "cli/fastest.h"
#include "cli/metrics.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/train_command.h"
#include "core/base/text.h"

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

nlohmann::ordered_json history_document(const TrainCommand::Outcome& o) {
  auto all = nlohmann::ordered_json::array();
  for (const EpochResult& e : o.history) {
    nlohmann::ordered_json entry{{"epoch", e.epoch}, {"step", e.step}, {"loss", e.loss}};
    if (e.score) {
      entry["test_loss"] = e.score->loss;
      entry["metrics"] = e.score->metrics;
    }
    entry["samples_per_s"] = e.samples_per_second;
    entry["seconds"] = e.trained_seconds;
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace

std::string TrainCommand::resume_command() const {
  std::string text = ranks.alone() ? "" : fmt::format("mpiexec -n {} ", ranks.ranks());
  return text + "tutti train --resume " + file_word(settings.checkpoint) + run.words_to_resume();
}

nlohmann::ordered_json TrainCommand::document(const Device& device, Trainer& trainer, int64_t per_epoch,
                                              const Outcome& o) const {
  std::optional<double> scale = trainer.loss_scale();
  nlohmann::json metrics = nlohmann::json::object();
  if (o.score) metrics = o.score->metrics;
  const int64_t steps = failed_at > 0 ? failed_at : trainer.steps();
  nlohmann::ordered_json out{{"device", device.id},
                             {"model", run.model},
                             {"size", run.definition().size(run.model_values.size).name},
                             {"parameters", trainer.parameter_count()},
                             {"steps", steps},
                             {"epochs", epochs_done(trainer, steps, per_epoch)},
                             {"loss", o.history.empty() ? nlohmann::json() : nlohmann::json(o.history.back().loss)},
                             {"accuracy", metrics.contains("accuracy") ? metrics.at("accuracy") : nlohmann::json()},
                             {"metrics", o.score ? metrics : nlohmann::json()},
                             {"test_loss", o.score ? nlohmann::json(o.score->loss) : nlohmann::json()},
                             {"samples_per_s", o.samples_per_second},
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
                             {"optimizer", run.text("optimizer")},
                             {"data", run.data},
                             {"precision", run.text("precision")},
                             {"loss_scale", scale ? nlohmann::json(*scale) : nlohmann::json()},
                             {"skipped_steps", trainer.skipped_steps()},
                             {"checkpoint", settings.checkpoint},
                             {"saved", o.saved},
                             {"adapters", wrote_weights ? adapters : ""},
                             {"merged", wrote_weights ? merged : ""},
                             {"stopped", o.stopped},
                             {"converged", o.converged},
                             {"target", goal_document(settings.target, trainer, o)},
                             {"history", history_document(o)},
                             {"world", o.failed ? nlohmann::ordered_json() : ranks.document(run.trainer, trainer)},
                             {"options", run.remembered()},
                             {"losses", trainer.losses()}};
  if (speeds) out["speeds"] = document_of(*speeds);
  run.report_fallback(trainer, out);
  profile.tell(out);
  return out;
}

int TrainCommand::report(const Device& device, Trainer& trainer, const data::Sources& data, const Outcome& o) {
  nlohmann::ordered_json out = document(device, trainer, run.steps_per_epoch(*data.train), o);
  if (!ranks.writes()) return o.stopped ? stopped : done;
  if (const std::string file = settings.log_dir + "/run.json"; !settings.log_dir.empty())
    try_write_target({"--log-dir", &file}, json_text(out));
  if (json)
    print_json(out);
  else {
    std::optional<double> scale = trainer.loss_scale();
    print_out("device     {} ({})\nmodel      {}, {} parameters\nsteps      {}, {:.3f} ms each (median), {}\n",
              device.id, device.name, run.model, trainer.parameter_count(), trainer.steps(), trainer.step_ms_median(),
              rate_text(o.samples_per_second));
    const EvalResult score = o.score.value_or(EvalResult{});
    if (o.score && score.metrics.empty()) fmt::print("test loss  {:.6f}\n", score.loss);
    for (const auto& [name, value] : score.metrics)
      fmt::print("{:<10} {} (test loss {:.4f})\n", name, metric_text(name, value), score.loss);
    fmt::print("memory     {} planned, {} used at most\nstate      {}\n", bytes_text(trainer.planned_bytes()),
               bytes_text(trainer.peak_bytes()), out.at("state_hash").get<std::string>());
    if (run.text("precision") != "f32")
      fmt::print("precision  {}{}\n", run.text("precision"),
                 scale ? fmt::format(", loss scale {}, {} steps skipped", *scale, trainer.skipped_steps()) : "");
    if (!ranks.alone())
      fmt::print("ranks      {} ({}), {} sent and {:.1f} s waited by rank 0\n", ranks.ranks(), run.trainer.reduce,
                 bytes_text(ranks.world()->bytes_sent()), ranks.world()->seconds_waited());
    fmt::print("{}", run.fallback_text(trainer));
    if (!adapters.empty() && wrote_weights) print_out("adapters   {}\n", adapters);
    if (!merged.empty() && wrote_weights) print_out("merged     {}\n", merged);
    if (o.saved) print_out("saved      {}\n", settings.checkpoint);
    if (o.last_saved == settings.checkpoint && !o.last_saved.empty())
      print_out("next       {}\n", o.stopped ? resume_command() : "tutti eval " + file_word(settings.checkpoint));
  }
  bool written = write_page(trainer, data, out, o);
  if (!o.stopped) return written && profile.written() ? done : stopped;
  print_err("stopped after step {}; {}\n", trainer.steps(),
            settings.checkpoint.empty() ? "nothing was saved (no --checkpoint)"
            : o.history.empty()         ? "there was nothing to save yet"
                                        : "go on with: " + resume_command());
  return stopped;
}

bool TrainCommand::write_page(Trainer& trainer, const data::Sources& data, const nlohmann::ordered_json& result,
                              const Outcome& o) {
  std::fflush(stdout);
  if (!settings.no_eval) page.look(trainer, run, data);
  return page.write(result,
                    o.stopped ? fmt::format("stopped after step {}", trainer.steps())
                    : o.converged
                        ? fmt::format("done: the test loss had not fallen for {} epochs", o.evaluations_since_best)
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
