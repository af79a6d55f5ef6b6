// The command `tutti train`: its options and its run.
#pragma once
#include <optional>
#include <string>

#include "cli/goal.h"
#include "cli/overfit.h"
#include "cli/profile.h"
#include "cli/progress.h"
#include "cli/report/run_report.h"
#include "cli/run_file.h"
#include "cli/run_options.h"
#include "cli/saver.h"
#include "cli/world_run.h"
#include "train/run/run_log.h"

namespace tutti::cli {

struct TrainCommand {
  RunOptions run;
  RunFile file;
  RunReport page;
  Profile profile;
  WorldRun ranks;
  std::string checkpoint, resume, adapters, merged, log_dir;
  std::string save_every, target;
  int64_t keep = 1, patience = 0, norms = 0;
  std::optional<int64_t> overfit;
  bool json = false, quiet = false, no_eval = false, keep_best = false, nan_check = false, summary = false;

  /// Result of training.
  struct Outcome {
    TrainResult result;  // of the last epoch
    EvalResult score;
    bool scored = false, cut_short = false;
    bool failed = false;     // other ranks may not be there any more
    bool converged = false;  // the test loss has not fallen for --patience epochs
    int epochs = 0;
    double rate = 0;                                                   // samples per second
    std::string good;                                                  // the last good checkpoint
    bool saved = false;                                                // whether this run wrote one
    bool on_target = false;                                            // --target was reached
    double seconds = 0;                                                // of training, without evaluation
    nlohmann::ordered_json history = nlohmann::ordered_json::array();  // an entry per epoch
  };

  int operator()();
  /// Throws Error(invalid) for options that do not go together.
  void check_options() const;
  /// Throws Error(invalid) for options that are of one process.
  void check_ranks() const;
  /// On ranks that do not write: no files.
  void drop_files();
  /// What all ranks must have in common.
  Settings common(const TrainerOptions& options, int64_t total) const;
  /// The same of the prepared model.
  static Settings begun(Trainer& trainer);
  int summarize_model();
  TrainerOptions trainer_options(const Device& device, const Task& task, const data::Sources& data, int64_t total);
  /// Trains on one batch and reports.
  int train_overfit(const Device& device, Trainer& trainer, const data::Sources& data, ProgressLine& progress);
  /// Trains and evaluates epoch by epoch until the end or a signal, and saves after each.
  Outcome train(Trainer& trainer, const data::Sources& data, int64_t total, ProgressLine& progress);
  /// Writes the page of a run that failed, and throws the error again, with ways to fit the run into memory.
  [[noreturn]] void failed(const Error& e, const Device& device, const Task& task, const TrainerOptions& options,
                           const data::Sources& data, Trainer& trainer);
  /// Logs the losses read since `logged` and advances it; reports a logging failure once.
  void log_steps(Trainer& trainer, const Progress& p, size_t& logged, ProgressLine& progress);
  /// Prints notices and failures of the log.
  void print_log(ProgressLine& progress);
  void log_epoch(const Trainer& trainer, const Outcome& o, ProgressLine& progress);
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
  int64_t steps_per_epoch(const data::Source& set) const;
  /// Total steps of a run from its beginning.
  int64_t total_steps(const data::Source& set) const;
  /// Resumes from the checkpoint of --resume; returns the total number of steps, including earlier ones.
  int64_t take_up(Trainer& trainer, const data::Source& set);
  std::string resume_command() const;
  void print_wait(const Trainer& trainer, const data::Source& set) const;

  // State of the run so far.
  std::optional<RunLog> log;
  Best best;
  int64_t begun_at = 0;        // steps done before this run
  Progress last;               // latest progress
  bool saves = false;          // whether any rank writes checkpoints
  bool wrote_weights = false;  // outputs of --adapters and --merged
  int64_t failed_at = 0;       // the step whose loss was not finite
};

}  // namespace tutti::cli
