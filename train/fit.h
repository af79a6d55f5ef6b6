// Makes a run fit into so much memory: by recompute of as few blocks as will do.
#pragma once
#include <string>
#include <vector>

#include "train/plan.h"

namespace tutti {

/// What it comes to.
struct Fit {
  std::vector<std::string> blocks;  ///< whose activations are computed again; TrainerOptions::recompute is their number
  size_t of = 0;                    ///< how many blocks the model has
  uint64_t peak = 0, plain = 0;     ///< bytes, with and without
  double cost = 0;                  ///< products computed twice, as a share of a plain step's; 0 where that is unknown
};

/// Plans that run, as RunPlanner does, with more and more blocks recomputed. Throws Error(no_memory) that names the
/// least that the run takes, and the accumulation that would fit, where there is one.
TUTTI_API Fit fit(const Device& device, const Task& task, const TrainerOptions& options, const data::Source& train,
                  const data::Source* test, uint64_t budget);

/// The options of `tutti train` that would make that run fit into so many bytes, the cheapest first; none where nothing
/// does.
TUTTI_API std::vector<std::string> ways_to_fit(const Device& device, const Task& task, const TrainerOptions& options,
                                               const data::Source& train, const data::Source* test, uint64_t room);

}  // namespace tutti
