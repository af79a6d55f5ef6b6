// Sums of a step by the ranks' devices. In a whole batch all ranks run the same programs, whose last part sums the
// gradients while it computes the others; otherwise they are summed behind the parts.
#include <array>

#include "core/world/world.h"
#include "train/run/device_group.h"
#include "train/run/device_model.h"
#include "train/run/gradient_buckets.h"
#include "train/run/step_sums.h"

namespace tutti {
namespace {

class DeviceSums : public StepSums {
 public:
  DeviceSums(DeviceModel& model, DeviceGroup& group)
      : world_(*model.options().world), group_(group), one_set_(!model.options().local_batches) {
    const GradientBuckets layout(*model.declared(), model.options().precision, model.division());
    for (const auto& s : layout.states) {
      buckets_.resize(s.bucket + 1);
      buckets_.back().push_back(s.name);
    }
    for (const nn::Parameter& p : model.declared()->buffers) statistics_.push_back(p.name);
  }

  /// All ranks prepare their programs at the same time, or none: what is recorded with sums is a collective.
  void watch(CompiledGraph& program, bool everywhere) override {
    if (!everywhere || !one_set_ || !world_.any(!program.sums_prepared())) return;
    during_runs_ = !world_.any(!program.prepare_sums(buckets_));
  }

  void begin(bool whole) override { whole_ = whole, last_part_ = summed_ = false; }
  void part_begins(bool last) override { last_part_ = last; }

  uint64_t run(CompiledGraph& program, const CompiledGraph::Fill& fill) override {
    if (!whole_ || !one_set_ || !last_part_ || !during_runs_) return program.run(fill);
    summed_ = true;
    return program.run_and_sum(fill);
  }

  StepVotes finish(StepVotes mine) override {
    std::array<float, 2> votes{static_cast<float>(mine.stop), static_cast<float>(mine.look)};
    const uint64_t travelling = world_.begin_all_reduce(votes);
    if (!summed_)
      for (const auto& bucket : buckets_) group_.all_reduce(bucket);
    // running statistics are rank 0's, as in PyTorch's DistributedDataParallel
    if (!statistics_.empty()) group_.broadcast(statistics_, 0);
    world_.wait(travelling);
    return {.stop = votes[0] > 0, .look = votes[1] > 0};
  }

 private:
  World& world_;
  DeviceGroup& group_;
  bool one_set_;                                   // whether a batch that is whole here is whole on all ranks
  std::vector<std::vector<std::string>> buckets_;  // states
  std::vector<std::string> statistics_;
  bool during_runs_ = false;  // whether programs of whole batches can
  bool whole_ = false, last_part_ = false, summed_ = false;
};

}  // namespace

std::unique_ptr<StepSums> make_device_sums(DeviceModel& model, DeviceGroup& group) {
  return std::make_unique<DeviceSums>(model, group);
}

}  // namespace tutti
