// tutti verify-run: trains the run of a checkpoint again, on any device, and compares the state hashes.
#include <fmt/format.h>

#include "cli/model_file.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "core/base/option_text.h"
#include "core/os/signals.h"
#include "train/run/saved_states.h"

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
    Device device = select_device(run.settings.device);
    print_lost_plugins();
    data::Sources data = run.read_data();
    Task task = run.make_task(*data.train);
    TrainerOptions how = run.trainer_options(run.total_steps(*data.train));
    how.forms = run.weight_forms(file);
    SavedStates saved;
    {
      Trainer trainer(device, task, how);
      trainer.load(file);
      saved = read_saved_states(trainer.loaded().metadata, file);
      trainer.prepare(*data.train);
      saved[trainer.steps()] = trainer.state_hash();  // of the tensors, whatever the metadata says
      how.seed = trainer.seed();
    }
    Trainer trainer(device, task, how);
    run.start(trainer, *data.train);
    trainer.prepare(*data.train);
    SavedStates found = retrain(trainer, *data.train, saved);
    if (found.empty() || (found.size() < saved.size() && agree(found, saved))) {
      print_err("partial: stopped by a signal after {} of {} steps, {} of {} saves compared\n", trainer.steps(),
                saved.rbegin()->first, found.size(), saved.size());
      return cut_off;
    }
    return report(device, found, saved);
  }

  /// The states at these saves, up to the first that differs or a signal.
  SavedStates retrain(Trainer& trainer, const data::Source& set, const SavedStates& saved) const {
    const int64_t steps = saved.rbegin()->first;
    const Device& device = trainer.device();
    ProgressLine progress(steps, run.settings.epochs, run.trainer.batch, quiet);
    progress.print(fmt::format("{}: {} ({}), {} steps again", device.id, device.name, device.reason, steps));
    os::catch_signals();
    SavedStates found;
    for (const auto& [step, hash] : saved) {
      while (trainer.steps() < step && !os::interrupted())
        trainer.train(set, step - trainer.steps(), [&](const Progress& p) {
          progress.show(p);
          return !os::interrupted();
        });
      if (trainer.steps() < step) break;
      if ((found[step] = trainer.state_hash()) != hash) break;
    }
    progress.clear();
    os::release_signals();
    return found;
  }

  /// Whether the last state found is the one saved.
  static bool agree(const SavedStates& found, const SavedStates& saved) {
    return found.rbegin()->second == saved.at(found.rbegin()->first);
  }

  int report(const Device& device, const SavedStates& found, const SavedStates& saved) const {
    const auto& [step, hash] = *found.rbegin();
    const bool same = agree(found, saved);
    if (json) {
      auto saves = nlohmann::ordered_json::array();
      for (const auto& [at, state] : found)
        saves.push_back({{"step", at}, {"state_hash", state}, {"checkpoint_state_hash", saved.at(at)}});
      print_json({{"ok", same},
                  {"checkpoint", file},
                  {"model", run.model},
                  {"device", device.id},
                  {"steps", step},
                  {"state_hash", hash},
                  {"checkpoint_state_hash", saved.at(step)},
                  {"saves", std::move(saves)}});
    } else if (same) {
      print_out("{}: the same bits on {} after {} steps ({}): state {}\n", file, device.id, step,
                found.size() == 1 ? "1 save" : fmt::format("{} saves", found.size()), hash);
    } else {
      std::string before = "from the first save on";
      if (found.size() > 1) before = fmt::format("the same after {}", std::prev(found.end(), 2)->first);
      print_out(
          "{}: other bits on {} after {} steps ({}): state {}, the run had {}\n  `tutti bisect --numerics exact` finds "
          "the node\n",
          file, device.id, step, before, hash, saved.at(step));
    }
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
