// The sum of what the parts of a step accumulated, over the parts of this process in order and over the ranks of a
// world: read from the device, added up on the host, and written back before the update. In order, all parts of a step
// begin with the same running statistics, and the step's are their mean. Otherwise gradients that the device reports
// early (tutti.ready) are sent while it computes the rest of the last part.
#pragma once
#include <memory>

#include "train/run/device_model.h"

namespace tutti {

/// What ranks decide together with every step: of a rank what it asks for, of the sum what any of them did.
struct StepVotes {
  bool stop = false;  ///< training ends after this step
  bool look = false;  ///< the losses are read after this step
};

class GradientSum {
 public:
  /// Whether a run needs one: with other ranks, or where the order counts.
  static bool needed(const TrainerOptions& options);
  /// The model's signature must be known.
  explicit GradientSum(DeviceModel& model);
  ~GradientSum();
  /// Before the first run of a training program: its gradients may be sent early. It must not run after this object is
  /// destroyed.
  void watch(CompiledGraph& program);
  /// Before the first part of a step.
  void begin();
  /// Before each part with samples; `last`: of this rank.
  void part_begins(bool last);
  /// Before a part without samples that runs all the same, because other ranks need this one.
  void idle_begins();
  /// Behind each part of this rank; `ran`: else it had no samples, and what it did is undone.
  void part_done(bool ran);
  /// Behind the last: the states are the sums of all ranks.
  StepVotes finish(StepVotes mine);

 private:
  struct Sums;
  template <class T>
  struct Ordered;
  template <class T>
  struct Fast;
  std::unique_ptr<Sums> sums_;
};

}  // namespace tutti
