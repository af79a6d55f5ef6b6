// tutti train --overfit: checks that a model can overfit one batch, as every correct model can.
#pragma once
#include <string>
#include <vector>

#include "cli/run_options.h"

namespace tutti::cli {

struct Overfit {
  bool passed = false, interrupted = false;
  double first = 0, last = 0;        ///< losses
  double goal = 0;                   ///< a hundredth of the first, or 1e-4
  std::vector<std::string> reasons;  ///< possible causes if it did not pass
};

/// Trains on the first batch of `set` until the loss reaches the goal, at most `steps` steps; `watch` is called with
/// the progress. Throws Error like Trainer::train.
Overfit overfit(Trainer& trainer, const data::Source& set, const RunOptions& run, int64_t steps,
                const Trainer::Watch& watch);

/// Regularization in the run's training step: "dropout, at 3", "--weight-decay 0.01".
std::vector<std::string> regularisation(const RunOptions& run, const data::Source& set);

}  // namespace tutti::cli
