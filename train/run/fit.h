// Makes a run fit into a memory budget. Recomputes as few blocks as needed.
#pragma once
#include <string>
#include <vector>

#include "train/run/plan.h"

namespace tutti {

/// Result of fit().
struct Fit {
  std::vector<std::string> blocks;  ///< recomputed blocks; TrainerOptions::recompute is their number
  size_t of = 0;                    ///< number of blocks in the model
  uint64_t peak = 0, plain = 0;     ///< peak bytes with and without recompute; `plain` is 0 if unknown
  double cost = 0;                  ///< extra FLOPs of the products, as a fraction of a plain step's; 0 if unknown
};

/// Plans the run with RunPlanner, with more and more blocks recomputed, until it fits. Throws Error(no_memory) that
/// names the smallest memory that the run needs, or the accumulation with which it fits.
TUTTI_API Fit fit(const Device& device, const Task& task, const TrainerOptions& options, const data::Source& train,
                  const data::Source* test, uint64_t budget);

/// The options of `tutti train` that make the run fit into `room` bytes, cheapest first; empty if none do.
TUTTI_API std::vector<std::string> ways_to_fit(const Device& device, const Task& task, const TrainerOptions& options,
                                               const data::Source& train, const data::Source* test, uint64_t room);

}  // namespace tutti
