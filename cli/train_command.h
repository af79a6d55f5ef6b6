// The command `tutti train`: its options and its run.
#pragma once
#include <optional>
#include <string>

#include "cli/overfit.h"
#include "cli/profile.h"
#include "cli/progress.h"
#include "cli/report/run_report.h"
#include "cli/run_file.h"
#include "cli/run_options.h"
#include "cli/world_run.h"
#include "train/run/fastest.h"
#include "train/run/run_option.h"

namespace tutti::cli {

struct TrainCommand {
  RunOptions run;
  RunSettings& settings = run.settings;
  RunFile file;
  RunReport page;
  Profile profile;
  WorldRun ranks;
  std::string resume, adapters, merged;
  std::optional<int64_t> overfit;
  bool json = false, quiet = false, summary = false;

  std::optional<ModelSpeeds> speeds;  // with --device fastest

  /// Result of training.
  struct Outcome : RunResult {
    std::optional<EvalResult> score;  // of the model at the end
    bool failed = false;              // other ranks may not be there any more
  };
  class Observer;

  int operator()();
  /// Throws Error(invalid) for options that do not go together.
  void check_options() const;
  void check_texts() const;
  /// Throws Error(invalid) for options that are of one process.
  void check_ranks() const;
  /// On ranks that do not write: no files.
  void drop_files();
  /// What all ranks must have in common.
  Settings common(const TrainerOptions& options, int64_t total) const;
  /// The same of the prepared model.
  static Settings begun(Trainer& trainer);
  int summarize_model();
  /// The device of --device, before data is read; none for "fastest".
  std::optional<Device> named_device() const;
  /// The device of the run: the named one, or the fastest for the model.
  Device device_for(const std::optional<Device>& named, const Task& task, const data::Sources& data, int64_t total);
  TrainerOptions trainer_options(const Device& device, const Task& task, const data::Sources& data, int64_t total);
  /// Trains on one batch and reports.
  int train_overfit(const Device& device, Trainer& trainer, const data::Sources& data, ProgressLine& progress);
  /// Trains until the end of the run or a signal.
  Outcome train(Trainer& trainer, const data::Sources& data, int64_t total, ProgressLine& progress);
  /// Writes the page of a run that failed, and throws the error again, with ways to fit the run into memory.
  [[noreturn]] void failed(const Error& e, const Device& device, const Task& task, const TrainerOptions& options,
                           const data::Sources& data, Trainer& trainer);
  /// The document of --json.
  nlohmann::ordered_json document(const Device& device, Trainer& trainer, int64_t per_epoch, const Outcome& o) const;
  /// Prints the document or the summary, and writes the page; returns the exit code.
  int report(const Device& device, Trainer& trainer, const data::Sources& data, const Outcome& o);
  bool write_page(Trainer& trainer, const data::Sources& data, const nlohmann::ordered_json& result, const Outcome& o);
  /// Prints the result of --overfit; returns the exit code.
  int report(const Device& device, const Trainer& trainer, const Overfit& o) const;
  /// Throws Error(invalid) for options that have no effect with --overfit.
  void check_overfit() const;
  /// Writes the outputs of --adapters and --merged.
  void save_weights(Trainer& trainer, const data::Source& set);
  /// Resumes from the checkpoint of --resume; returns the total number of steps, including earlier ones.
  int64_t take_up(Trainer& trainer, const data::Source& set);
  std::string resume_command() const;

  // State of the run so far.
  std::optional<Run> loop;
  Progress last;               // latest progress
  bool wrote_weights = false;  // outputs of --adapters and --merged
  int64_t failed_at = 0;       // the step whose loss was not finite
};

}  // namespace tutti::cli
