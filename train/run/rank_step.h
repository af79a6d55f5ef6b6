// The step of one rank of many, measured without the others (tutti plan --network).
#pragma once
#include <vector>

#include "train/run/trainer.h"

namespace tutti {

/// Seconds of one rank's share of a step, and when its gradients could be sent.
struct RankStep {
  struct Bucket {
    uint64_t bytes = 0;
    double ready = 0;  ///< seconds after the begin of the step
  };
  double parts = 0;             ///< until the last part is done
  double update = 0;            ///< after it
  std::vector<Bucket> buckets;  ///< in the order in which they are sent; ready after `parts` if the device reports none
};

/// Runs `steps` steps of rank 0's share of the batch, of options.planned_ranks ranks, without communication; medians.
/// Throws Error(invalid) if the set has no batch of that size.
TUTTI_API RankStep measure_rank_step(const Device& device, const Task& task, const TrainerOptions& options,
                                     const data::Source& set, int64_t steps);

}  // namespace tutti
