// tutti verify-run: trains the run of a checkpoint again, on any device, and compares the state hashes.
#include <fmt/format.h>

#include "cli/model_file.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "cli/signals.h"
#include "core/base/option_text.h"

namespace tutti::cli {
namespace {

struct VerifyRunCommand {
  RunOptions run;
  std::string file;
  bool json = false, quiet = false;

  /// Throws Error(invalid) for a run whose bits another device would not repeat.
  void check() const {
    if (!run.trainer_options().exact)
      throw invalid(fmt::format("{}: the run has numerics fast, whose bits differ between devices", file),
                    "train with --numerics exact");
    if (parse_plateau(run.text("schedule")))
      throw invalid(fmt::format("{}: the learning rate of its run follows the test loss (schedule {}), which is not "
                                "computed again",
                                file, run.text("schedule")),
                    "verify a run with another schedule");
  }

  int operator()() {
    run.restore(file);
    run.validate();
    check();
    Device device = select_device(run.device);
    print_lost_plugins();
    data::Sources data = run.read_data();
    Task task = run.make_task(*data.train);
    TrainerOptions how = run.trainer_options(run.total_steps(*data.train));
    how.forms = run.weight_forms(file);
    int64_t steps = 0;
    std::string saved;
    {
      Trainer trainer(device, task, how);
      trainer.load(file);
      trainer.prepare(*data.train);
      steps = trainer.steps();
      saved = trainer.state_hash();
      how.seed = trainer.seed();
    }
    Trainer trainer(device, task, how);
    run.start(trainer, *data.train);
    trainer.prepare(*data.train);
    ProgressLine progress(steps, run.epochs, run.trainer.batch, quiet);
    progress.print(fmt::format("{}: {} ({}), {} steps again", device.id, device.name, device.reason, steps));
    catch_signals();
    while (trainer.steps() < steps && !interrupted())
      trainer.train(*data.train, steps - trainer.steps(), [&](const Progress& p) {
        progress.show(p);
        return !interrupted();
      });
    progress.clear();
    release_signals();
    if (trainer.steps() < steps) {
      print_err("partial: stopped by a signal after {} of {} steps\n", trainer.steps(), steps);
      return cut_off;
    }
    return report(device, trainer, steps, saved);
  }

  int report(const Device& device, Trainer& trainer, int64_t steps, const std::string& saved) const {
    std::string hash = trainer.state_hash();
    bool same = hash == saved;
    if (json)
      print_json({{"ok", same},
                  {"checkpoint", file},
                  {"model", run.model},
                  {"device", device.id},
                  {"steps", steps},
                  {"state_hash", hash},
                  {"checkpoint_state_hash", saved}});
    else if (same)
      print_out("{}: the same bits on {} after {} steps: state {}\n", file, device.id, steps, hash);
    else
      print_out(
          "{}: other bits on {} after {} steps: state {}, the checkpoint has {}\n  `tutti bisect --numerics exact` "
          "finds the node\n",
          file, device.id, steps, hash, saved);
    return same ? done : stopped;
  }
};

}  // namespace

void add_verify_run(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "verify-run", "Train the run of a checkpoint again, on any device, and compare the bits of its state");
  static VerifyRunCommand command;
  sub->add_option("checkpoint", command.file, "Checkpoint of a run with --numerics exact")->required();
  command.run.add_to(*sub);
  sub->add_flag("--quiet", command.quiet, "No progress on stderr");
  add_json_flag(*sub, command.json);
  sub->footer("Exit code 1 if the bits differ. Example: tutti verify-run run.safetensors --device opencl");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
