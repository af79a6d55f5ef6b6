// tutti train: trains a model, shows progress, saves checkpoints.
#include <fmt/format.h>

#include <csignal>

#include "cli/progress.h"
#include "cli/run_options.h"

namespace tutti::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

struct TrainCommand {
  RunOptions run;
  std::string checkpoint, resume;
  bool json = false, quiet = false, no_eval = false;

  int operator()();
  std::string resume_command() const { return fmt::format("tutti train --resume {}", checkpoint); }
};

int TrainCommand::operator()() {
  if (!resume.empty()) {
    run.recall(resume);
    if (checkpoint.empty()) checkpoint = resume;
  }
  run.validate();
  Device device = select_device(run.device);
  data::Split split = data::parse_data(run.data);
  Trainer trainer(device, run.trainer_options(split.train));
  if (!resume.empty()) trainer.load(resume);

  int64_t per_epoch = split.train.size() / run.batch;
  int64_t total = run.steps > 0 ? run.steps : run.epochs * per_epoch;
  ProgressLine progress(total, per_epoch > 0 ? (total + per_epoch - 1) / per_epoch : 0, run.batch, quiet);
  progress.print(fmt::format("{}: {} ({})", device.id, device.name, device.reason));
  if (!resume.empty()) progress.print(fmt::format("resumed at step {} of {}", trainer.steps(), total));

  std::signal(SIGINT, [](int) { interrupted = 1; });
  auto save = [&] {
    if (!checkpoint.empty()) trainer.save(checkpoint, {{"run", nlohmann::json(run.remembered()).dump()}});
  };
  TrainResult result;
  EvalResult score;
  bool scored = false;
  int epochs = 0;
  std::vector<double> rates;
  while (trainer.steps() < total && !interrupted) {
    int64_t before = trainer.steps();
    try {
      result = trainer.train(split.train, total - before, [&](const Progress& p) {
        progress.show(p);
        return !interrupted;
      });
    } catch (const NotFinite& e) {
      std::signal(SIGINT, SIG_DFL);
      bool kept = !checkpoint.empty() && epochs > 0;
      progress.print("");
      throw Error(Code::internal, e.what(),
                  fmt::format("{}{}", e.remedy, kept ? fmt::format("; the last good checkpoint is {}", checkpoint) : ""));
    }
    rates.push_back(result.samples_per_second);
    scored = !no_eval && !result.stopped;
    if (scored) score = trainer.evaluate(split.test);
    progress.print(fmt::format("epoch {}  step {}  loss {:.4f}{}  {:.0f} samples/s", (trainer.steps() + per_epoch - 1) / per_epoch,
                               trainer.steps(), result.loss,
                               scored ? fmt::format("  test loss {:.4f}  accuracy {:.2f} %", score.loss, 100 * score.accuracy) : "",
                               result.samples_per_second));
    save();
    ++epochs;
  }
  std::signal(SIGINT, SIG_DFL);
  if (epochs == 0 && !no_eval) {  // resumed at its end
    score = trainer.evaluate(split.test);
    scored = true;
  }
  double rate = 0;
  for (double r : rates) rate += r / static_cast<double>(rates.size());

  nlohmann::ordered_json out{{"device", device.id},
                             {"model", run.model},
                             {"parameters", trainer.parameter_count()},
                             {"steps", trainer.steps()},
                             {"epochs", per_epoch > 0 ? static_cast<double>(trainer.steps()) / static_cast<double>(per_epoch) : 0},
                             {"loss", result.loss},
                             {"accuracy", scored ? nlohmann::json(score.accuracy) : nlohmann::json()},
                             {"test_loss", scored ? nlohmann::json(score.loss) : nlohmann::json()},
                             {"samples_per_s", rate},
                             {"step_ms_median", trainer.step_ms_median()},
                             {"compile_ms", trainer.compile_ms()},
                             {"peak_bytes", trainer.peak_bytes()},
                             {"planned_bytes", trainer.planned_bytes()},
                             {"state_hash", trainer.state_hash()},
                             {"seed", run.seed},
                             {"device_name", device.name},
                             {"device_reason", device.reason},
                             {"batch", run.batch},
                             {"optimizer", run.optimizer},
                             {"data", run.data},
                             {"checkpoint", checkpoint},
                             {"stopped", interrupted != 0},
                             {"losses", trainer.losses()}};
  if (json) print_json(out);
  else {
    fmt::print("device     {} ({})\nmodel      {}, {} parameters\nsteps      {}, {:.3f} ms each (median), {:.0f} samples/s\n", device.id,
               device.name, run.model, trainer.parameter_count(), trainer.steps(), trainer.step_ms_median(), rate);
    if (scored) fmt::print("accuracy   {:.2f} % (test loss {:.4f})\n", 100 * score.accuracy, score.loss);
    fmt::print("memory     {:.1f} MiB planned, {:.1f} MiB used at most\nstate      {}\n", static_cast<double>(trainer.planned_bytes()) / (1 << 20),
               static_cast<double>(trainer.peak_bytes()) / (1 << 20), trainer.state_hash());
    if (!checkpoint.empty()) fmt::print("saved      {}\nnext       {}\n", checkpoint, interrupted ? resume_command() : "tutti eval " + checkpoint);
  }
  if (!interrupted) return done;
  fmt::print(stderr, "stopped after step {}; {}\n", trainer.steps(),
             checkpoint.empty() ? "nothing was saved (no --checkpoint)" : "go on with: " + resume_command());
  return stopped;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("train", "Train a model; the whole step runs on the device");
  static TrainCommand command;
  command.run.add_to(*sub);
  sub->add_option("--checkpoint", command.checkpoint, "Save here (safetensors) after every epoch and when interrupted")->group("Files");
  sub->add_option("--resume", command.resume, "Go on from this checkpoint, with its options unless others are given")->group("Files");
  sub->add_flag("--no-eval", command.no_eval, "Do not evaluate on the test set")->group("Training");
  sub->add_flag("--quiet", command.quiet, "No progress on stderr");
  add_json_flag(*sub, command.json);
  sub->footer("Example: tutti train mlp --layers 784,512,256,10 --dropout 0.2 --epochs 5 --checkpoint run.safetensors");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
