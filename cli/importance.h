// Permutation importance: what a model's score loses if one column of a table is shuffled.
#pragma once
#include <string>
#include <vector>

#include "train/run/trainer.h"

namespace tutti::cli {

struct Importance {
  std::string column;
  double loss = 0;  ///< the score minus the mean score over `importance_repeats` shuffles of the column
};
constexpr int64_t importance_repeats = 5;

/// The score of the result that importances are differences of: "accuracy", "r2", or, without either, "loss" (negated).
std::string score_name(const EvalResult& result);
/// One per column of the table, the largest first. `result`: of the samples as they are. Throws Error(invalid) if the
/// set is not a table, or has fewer than two samples.
std::vector<Importance> importances(Trainer& trainer, const data::Source& set, const EvalResult& result);

}  // namespace tutti::cli
