// The sum of what the parts of a step accumulated, over the parts of this process in order and over the ranks of a
// world: by the ranks' devices (device_group.h), or read from the device, added up on the host, and written back before
// the update. In order, all parts of a step
// begin with the same running statistics, and the step's are their mean. Otherwise gradients that the device reports
// early (tutti.ready) are sent while it computes the rest of the last part.
#pragma once
#include <memory>

#include "train/run/device_model.h"

namespace tutti {

class DeviceGroup;
class StepSums;

/// What ranks decide together with every step: of a rank what it asks for, of the sum what any of them did.
struct StepVotes {
  bool stop = false;  ///< training ends after this step
  bool look = false;  ///< the losses are read after this step
};

class GradientSum {
 public:
  /// Whether a run needs one: with other ranks, or where the order counts.
  static bool needed(const TrainerOptions& options);
  /// The model's signature must be known. All ranks construct it: they decide where they add up (DeviceGroup).
  explicit GradientSum(DeviceModel& model);
  ~GradientSum();
  /// The ranks' devices, if they add up among themselves, else null; and what was decided.
  DeviceGroup* group();
  Collectives collectives() const;
  /// Before the first run of a training program: its gradients may be sent early. It must not run after this object is
  /// destroyed. `everywhere`: all ranks call it now, with the program for the parts of a whole batch.
  void watch(CompiledGraph& program, bool everywhere);
  /// Before the first part of a step. `whole`: its batch is, on all ranks.
  void begin(bool whole);
  /// Before each part with samples; `last`: of this rank.
  void part_begins(bool last);
  /// Enqueues a part with samples; its ticket.
  uint64_t run(CompiledGraph& program, const CompiledGraph::Fill& fill);
  /// Before a part without samples that runs all the same, because other ranks need this one.
  void idle_begins();
  /// Behind each part of this rank; `ran`: else it had no samples, and what it did is undone.
  void part_done(bool ran);
  /// Behind the last: the states are the sums of all ranks.
  StepVotes finish(StepVotes mine);

 private:
  std::unique_ptr<DeviceGroup> group_;  // of several ranks
  std::unique_ptr<StepSums> sums_;
};

}  // namespace tutti
