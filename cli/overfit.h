// tutti train --overfit: whether a model can learn one batch by heart, which every sound one can.
#pragma once
#include <string>
#include <vector>

#include "cli/run_options.h"

namespace tutti::cli {

struct Overfit {
  bool passed = false, interrupted = false;
  double first = 0, last = 0;        ///< losses
  double goal = 0;                   ///< a hundredth of the first, or 1e-4
  std::vector<std::string> reasons;  ///< what may keep the loss from there, where it did not pass
};

/// Trains on the first batch of `set` until the loss is at the goal, at most `steps` steps; `watch` sees each. Throws
/// Error as Trainer::train does.
Overfit overfit(Trainer& trainer, const data::Source& set, const RunOptions& run, int64_t steps,
                const Trainer::Watch& watch);

/// What is random or held back in a training step of the run: "dropout, at 3", "--weight-decay 0.01".
std::vector<std::string> regularisation(const RunOptions& run, const data::Source& set);

}  // namespace tutti::cli
