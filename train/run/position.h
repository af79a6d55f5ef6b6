// Progress of a training run, counted in samples, so that a run can continue with another batch size.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/base/export.h"

namespace tutti {

struct TUTTI_API Position {
  int64_t epoch = 0;    ///< completed passes over the set
  int64_t sample = 0;   ///< samples done in the current pass
  int64_t samples = 0;  ///< size of that pass's data set; 0: no set seen yet
  int64_t batch = 0;    ///< batch size of the steps so far; 0: unknown
  /// Added to the number of steps done to get the schedule's step. When the batch size changes, the schedule counts the
  /// steps that the new batch size would have needed for the same number of samples.
  int64_t ahead = 0;
  bool keep_last = false;  ///< whether a pass includes the last, smaller batch
  /// From a checkpoint that stored only the number of steps: epoch and sample are computed once the set is known. Until
  /// then next_batch and next_keep_last are those of the run that continues.
  bool in_steps = false;
  int64_t next_batch = 0;
  bool next_keep_last = false;

  /// Number of steps for `count` samples.
  int64_t steps_in(int64_t count) const { return count / batch + (keep_last && count % batch != 0); }
  /// Steps left in the current pass.
  int64_t steps_left_in_epoch() const { return steps_in(samples - sample); }
  /// Steps left until `epochs` passes are done.
  int64_t steps_left(int64_t epochs) const {
    return epochs <= epoch ? 0 : steps_left_in_epoch() + (epochs - epoch - 1) * steps_in(samples);
  }
  /// Continues with another batch size after `step` steps.
  void change_batch(int64_t batch, bool keep_last, int64_t step);
  /// Continues with a set of `size` samples after `step` steps. If the size differs from before, the current pass
  /// restarts.
  void change_set(int64_t size, int64_t step);
  /// Advances by a step of `count` samples.
  void advance(int64_t count);
};

/// The text for a checkpoint's metadata.
std::string to_text(const Position& position);
/// Reads the position from a checkpoint's metadata; `path` names it in messages. Checkpoints older than version 0.3
/// stored only the number of steps, and the batch size in the run's options. Throws Error(invalid) for impossible
/// numbers.
Position read_position(const std::map<std::string, std::string>& metadata, const std::string& path);

}  // namespace tutti
