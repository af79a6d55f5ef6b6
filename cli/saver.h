// Saves checkpoints while training goes on: a thread of its own writes, and steps do not wait for the disk.
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

namespace tutti::cli {

/// When the next checkpoint is due within an epoch: after so many steps, or so much time.
class SaveClock {
 public:
  /// "500" (steps), "90s", "10m", "2h"; "": never. Throws Error(invalid).
  SaveClock(const std::string& every, int64_t step) { parse(every), restart(step); }
  /// How many steps may go by before it, or before the end of the run.
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
  int64_t evaluations_since_best = 0;  ///< evaluations behind it

  void update(double x) {
    ++evaluations_since_best;
    if (!(x < loss)) return;
    loss = x;
    evaluations_since_best = 0;
  }
  /// As a checkpoint's metadata keeps it, and back; a text that is none changes nothing.
  std::string text() const;
  void restore(const std::string& text);
};

/// The newest checkpoint has the run's path, PATH. Beside it, where asked for, the ones before as NAME.step-N.EXT and
/// the best one as NAME.best.EXT: other names of files that were written once.
class Saver {
 public:
  /// `keep`: how many of the newest stay, PATH among them. `path` may be "": then nothing is saved.
  Saver(std::string path, int64_t keep, bool keep_best) : path_(std::move(path)), keep_(keep), keep_best_(keep_best) {}
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  /// Waits for what is being written.
  ~Saver();

  /// Whether one checkpoint is being written and another waits for it: a third would have to wait, and cost memory.
  bool full() const { return unwritten_ >= 2; }
  /// Has it written behind those before; waits for them where it is full.
  void save(Checkpoint checkpoint, int64_t step, bool best);
  /// Why the newest that was tried could not be written.
  std::optional<Error> failure() const;
  /// Waits until all is written. Throws that failure.
  void finish();
  /// The last checkpoint that was written whole, or what the run began from; "" where there is none. Waits for what is
  /// being written.
  const std::string& last_saved();
  void began_from(const std::string& path) { good_ = path; }
  /// Whether any was written. Waits as last_saved() does.
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

  std::string path_, good_;
  mutable std::mutex mutex_;  // of the failure
  std::optional<Error> failure_;
  int64_t keep_;
  bool keep_best_, wrote_ = false;
  std::atomic<int> unwritten_ = 0;
  std::future<void> writing_;  // the newest, which waits for the one before
};

}  // namespace tutti::cli
