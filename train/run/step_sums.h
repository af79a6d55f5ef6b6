// How the sums of a step are made: what GradientSum chooses from.
#pragma once
#include <cstdint>
#include <memory>

#include "train/run/gradient_sum.h"

namespace tutti {

class StepSums {
 public:
  virtual ~StepSums() = default;
  virtual void watch(CompiledGraph&, bool) {}
  virtual void begin(bool whole) = 0;
  virtual void part_begins(bool) {}
  virtual uint64_t run(CompiledGraph& program, const CompiledGraph::Fill& fill) { return program.run(fill); }
  virtual void idle_begins() {}
  virtual void part_done(bool) {}
  virtual StepVotes finish(StepVotes mine) = 0;
};

/// Sums by the devices of the ranks.
std::unique_ptr<StepSums> make_device_sums(DeviceModel& model, DeviceGroup& group);

}  // namespace tutti
