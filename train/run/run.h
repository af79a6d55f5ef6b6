// A training run: epochs, evaluation, checkpoints, early stopping and logs. A front end describes it by RunSettings,
// and says what it prints as a RunObserver.
#pragma once
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "train/run/trainer.h"

namespace tutti {

struct TUTTI_API RunSettings {
  // The options that run_options() has records of. Front ends read `memory_budget` and `device`; Run does not.
  int64_t epochs = 1;           ///< of this run; the command line counts those of the runs that it resumes, too
  int64_t steps = 0;            ///< of the trainer in all, in place of `epochs`; 0: by `epochs`
  uint64_t memory_budget = 0;   ///< bytes that the run may need: see fit(); 0: no limit
  std::string device = "auto";  ///< as for select_device(), or "fastest"
  std::string checkpoint = {};  ///< the newest checkpoint's file; "": none
  std::string log_dir = {};     ///< see RunLog; "": none
  std::string save_every = {};  ///< within an epoch: "500" (steps), "90s", "10m", "2h"; "": only at its end
  int64_t keep = 1;             ///< newest checkpoints, with `checkpoint` itself
  bool keep_best = false;       ///< also that of the lowest test loss, as NAME.best.EXT
  int64_t patience = 0;         ///< epochs without a lower test loss that end the run; 0: off
  std::string target = {};      ///< "accuracy=0.97": a value of the test set that ends the run; "": none
  bool no_eval = false;         ///< no evaluation on the test set

  bool only_best = false;     ///< `checkpoint` has the best model of this run, not the newest: see Run
  bool norms = false;         ///< whether the log has norms (TrainerOptions::norms_every)
  std::string data = "SPEC";  ///< how `tutti data` names the training data, for a hint
};

/// Where a run's batches come from, in passes (epochs).
class TUTTI_API Passes {
 public:
  virtual ~Passes() = default;
  /// The number, from 1, of the pass that train() begins or continues.
  virtual int64_t begin() = 0;
  /// Trains to the end of that pass, like Trainer::train().
  virtual TrainResult train(int64_t max_steps, const Trainer::Watch& watch) = 0;
  /// Whether that pass has ended.
  virtual bool ended() const = 0;
  /// Steps of a pass; 0: unknown.
  virtual int64_t steps() const = 0;
  /// How to hand in batches faster. `data`: RunSettings::data.
  virtual std::string advice(const std::string& data) const = 0;
};

/// Passes over a data set.
class TUTTI_API SetPasses : public Passes {
 public:
  SetPasses(Trainer& trainer, const data::Source& set) : trainer_(trainer), set_(set) {}
  int64_t begin() override;
  TrainResult train(int64_t max_steps, const Trainer::Watch& watch) override;
  bool ended() const override;
  int64_t steps() const override;
  std::string advice(const std::string& data) const override;

 private:
  Trainer& trainer_;
  const data::Source& set_;
};

/// What an epoch of a run came to.
struct TUTTI_API EpochResult {
  int64_t epoch = 0, step = 0;  ///< number of the pass, from 1; steps of the trainer after it
  double loss = 0;              ///< mean over the epoch's steps
  std::optional<EvalResult> score = {};
  double samples_per_second = 0;
  double trained_seconds = 0;  ///< of this run so far, without evaluation
  double seconds = 0;          ///< of this epoch, with evaluation
  /// For logs: the test set's loss and metrics, and "train_loss". Only with a score.
  std::map<std::string, double> scalars() const;
};

struct TUTTI_API RunResult {
  std::vector<EpochResult> history = {};
  bool stopped = false;                ///< the observer ended it
  bool converged = false;              ///< by RunSettings::patience
  bool on_target = false;              ///< by RunSettings::target
  int64_t evaluations_since_best = 0;  ///< see Best
  double samples_per_second = 0;       ///< of training
  double seconds = 0;                  ///< of training
  std::string last_saved = {};         ///< the last good checkpoint, of this run or the one that it resumes
  bool saved = false;                  ///< whether this run wrote one
  std::string hint = {};               ///< what to do if steps waited noticeably long for data; usually ""
};

/// What a front end does during a run. An exception in a function ends the run.
class TUTTI_API RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// Whether the run is to end after the current step, for example because of a signal. Asked often.
  virtual bool stop() { return false; }
  /// Before a pass's first step here. `steps`: of the pass; 0: unknown.
  virtual void epoch_begins(int64_t /*epoch*/, int64_t /*steps*/) {}
  /// About ten times a second.
  virtual void progress(const Progress& /*progress*/) {}
  /// Whether step() is to be called.
  virtual bool reads_steps() const { return false; }
  /// Once for every step, from 1, after its loss was read: "loss", "learning_rate", …
  virtual void step(int64_t /*step*/, const std::map<std::string, double>& /*scalars*/) {}
  virtual void norms(const Norms& /*norms*/) {}
  virtual void epoch(const EpochResult& /*epoch*/) {}
  virtual void warn(const std::string& /*text*/) {}
  /// For checkpoints.
  virtual std::map<std::string, std::string> metadata() { return {}; }
  /// Called when a checkpoint is due, to save something else. An Error is reported, and the next call tries again.
  virtual void save(Trainer& /*trainer*/) {}
};

/// A run. After every epoch it evaluates, judges patience and target, and saves; checkpoints are written in the
/// background (see Saver). A run whose trainer has loaded a checkpoint, and no step since, goes on with the best test
/// loss in it. With only_best, `checkpoint` is written only after epochs whose test loss (without evaluation: training
/// loss) is the lowest of this run. All ranks of a world make the same calls; rank 0 writes, and decides where ranks
/// evaluate by themselves.
class TUTTI_API Run {
 public:
  /// Checks the settings, locks `checkpoint` and opens the log. `writes`: whether this rank does. Throws
  /// Error(invalid).
  explicit Run(RunSettings settings, bool writes = true);
  ~Run();

  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

  /// Ends the run after that many steps of the trainer in all, whatever the settings say.
  void end_at(int64_t steps);
  /// Trains until a limit is reached, early stopping, or the observer's stop(). `test`: evaluated after every epoch;
  /// null with RunSettings::no_eval. Throws NotFinite, with the last good checkpoint in the remedy, and
  /// Error(internal) if the last checkpoint could not be written.
  RunResult train(Trainer& trainer, Passes& passes, const data::Source* test, RunObserver& observer);
  /// Logs the steps whose losses were read since the last call. train() does so itself.
  void log_steps(Trainer& trainer, const Progress& progress, RunObserver& observer);

 private:
  struct Impl;
  class Loop;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
