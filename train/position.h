// How far a run has come, counted in samples: it goes on with batches of another size and knows its epoch.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/base/export.h"

namespace tutti {

struct TUTTI_API Position {
  int64_t epoch = 0;    ///< passes over the set that are done
  int64_t sample = 0;   ///< samples that the present pass has taken, in its order
  int64_t samples = 0;  ///< of the set of that pass; 0: none was seen yet
  int64_t batch = 0;    ///< of the steps until now; 0: unknown
  /// What a schedule's step is beyond the steps that were done: after so many of another batch, those of the present
  /// one that would have taken as many samples count.
  int64_t ahead = 0;
  bool keep_last = false;  ///< whether a pass takes its last, smaller batch too
  /// Of a checkpoint that kept the number of steps alone: epoch and sample are known once the set is; until then these
  /// are what the run goes on with.
  bool in_steps = false;
  int64_t next_batch = 0;
  bool next_keep_last = false;

  /// Steps that so many samples are good for.
  int64_t steps_in(int64_t count) const { return count / batch + (keep_last && count % batch != 0); }
  /// Of the present pass over `samples`.
  int64_t steps_left_in_epoch() const { return steps_in(samples - sample); }
  /// Until so many passes are done.
  int64_t steps_left(int64_t epochs) const {
    return epochs <= epoch ? 0 : steps_left_in_epoch() + (epochs - epoch - 1) * steps_in(samples);
  }
  /// Goes on with steps of that batch, after `step` steps.
  void change_batch(int64_t batch, bool keep_last, int64_t step);
  /// Goes on over a set of that size, after `step` steps. Where it has another size than before, the pass that goes on
  /// begins anew.
  void change_set(int64_t size, int64_t step);
  /// Behind a step of so many samples.
  void advance(int64_t count);
};

/// As a checkpoint's metadata keep it.
std::string to_text(const Position& position);
/// Of a checkpoint's metadata; `path` names it in messages. Those of before version 0.3 kept the number of steps, and
/// in the run's options the batch. Throws Error(invalid) for numbers that no run has.
Position read_position(const std::map<std::string, std::string>& metadata, const std::string& path);

}  // namespace tutti
