// Saves checkpoints in a background thread, so that training does not wait for the disk.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/status.h"
#include "data/files/checkpoint.h"

namespace tutti {

/// Decides when the next checkpoint within an epoch is due: after a number of steps or some time.
class SaveClock {
 public:
  /// "500" (steps), "90s", "10m", "2h"; "": never. Throws Error(invalid).
  SaveClock(const std::string& every, int64_t step) { parse(every), restart(step); }
  /// Steps until the next checkpoint or the end of the run.
  int64_t steps_left(int64_t step, int64_t total) const {
    return std::min(total - step, steps_ > 0 ? std::max<int64_t>(last_ + steps_ - step, 1) : total - step);
  }
  bool now() const {
    return seconds_ > 0 && std::chrono::steady_clock::now() - started_ >= std::chrono::duration<double>(seconds_);
  }
  void restart(int64_t step) {
    last_ = step;
    started_ = std::chrono::steady_clock::now();
  }

 private:
  void parse(const std::string& every);
  int64_t steps_ = 0, last_ = 0;
  double seconds_ = 0;
  std::chrono::steady_clock::time_point started_;
};

/// The lowest test loss so far.
struct Best {
  double loss = std::numeric_limits<double>::max();
  int64_t evaluations_since_best = 0;  ///< number of evaluations since then

  /// Returns whether x is lower than all before.
  bool update(double x) {
    ++evaluations_since_best;
    if (!(x < loss)) return false;
    loss = x;
    evaluations_since_best = 0;
    return true;
  }
  /// Converts to and from text for a checkpoint's metadata; restore() ignores a malformed text.
  std::string text() const;
  void restore(const std::string& text);
};

/// The newest checkpoint has the run's path, PATH. If requested, older ones are kept as NAME.step-N.EXT and the best
/// one as NAME.best.EXT; these are hard links (copies on file systems without them), so each checkpoint is written
/// once.
class Saver {
 public:
  /// `keep`: number of newest checkpoints to keep, including PATH. `path` "": nothing is saved.
  Saver(std::string path, int64_t keep, bool keep_best) : path_(std::move(path)), keep_(keep), keep_best_(keep_best) {}
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  /// Waits for pending writes.
  ~Saver();

  /// Whether one checkpoint is being written and another is queued: a third would block and cost memory.
  bool full() const { return unwritten_ >= 2; }
  /// Enqueues a checkpoint for writing; blocks while full().
  void save(Checkpoint checkpoint, int64_t step, bool best);
  /// The error of the latest attempt to write, if it failed.
  std::optional<Error> failure() const;
  /// Waits until everything is written. Throws failure() if there is one.
  void finish();
  /// The last complete checkpoint, or the one that the run started from; "" if there is none. Waits for pending writes.
  const std::string& last_saved();
  void began_from(const std::string& path) { last_saved_ = path; }
  /// Whether any checkpoint was written. Waits like last_saved().
  bool wrote() const {
    wait();
    return wrote_;
  }

 private:
  void write(const Checkpoint& checkpoint, int64_t step, bool best) const;
  void wait() const {
    if (writing_.valid()) writing_.wait();
  }
  /// Removes all but the newest `keep_ - 1` files NAME.step-N.EXT.
  void prune(int64_t step) const;
  std::string named(const std::string& what) const;

  std::string path_, last_saved_;
  mutable std::mutex mutex_;  // protects failure_
  std::optional<Error> failure_;
  int64_t keep_;
  bool keep_best_, wrote_ = false;
  std::atomic<int> unwritten_ = 0;
  std::future<void> writing_;  // the newest write, which waits for the previous one
};

}  // namespace tutti
