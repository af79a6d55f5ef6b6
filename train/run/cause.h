// Finds the likely cause of a NaN or infinite loss or state and suggests a remedy, from data that the host still has
// and from the node that produced the first such value.
#pragma once
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "data/source.h"
#include "graph/graph.h"
#include "train/step/precision.h"

namespace tutti {

/// "NaN", "infinite" or "-infinite".
std::string not_finite_in_words(double x);

/// A cause as text ("" if unknown) and its remedy.
struct Cause {
  std::string text, remedy;
};

/// Describes the first NaN or infinity in the samples: "sample 7 of data set d is NaN in column 'input' at [3]". "" if
/// all are finite.
std::string not_finite_in(const data::Source& set, std::span<const int32_t> samples);

/// Sample indices of the last `loss_ring` + 1 steps, to search for the cause of a NaN.
class RecentSamples {
 public:
  void clear() { steps_.clear(); }
  void ran(std::span<const int32_t> samples);
  /// not_finite_in() for the batch `back` steps before the last one; `set` is that step's data set. "" if that step is
  /// no longer kept.
  std::string not_finite(const data::Source& set, int64_t back) const;

 private:
  std::deque<std::vector<int32_t>> steps_;
};

/// The cause for non-finite samples; `samples` is the text of not_finite_in().
Cause data_cause(const std::string& samples);

/// State of a run whose loss or state became NaN or infinite.
struct Evidence {
  int64_t step;   ///< from 1
  int64_t first;  ///< the run's first step
  Precision precision;
  bool overflow;                  ///< the last loss is not finite (in f16: so the gradient scale is not the cause)
  bool replays;                   ///< whether to suggest replaying the steps with nan_check
  std::span<const float> losses;  ///< of the steps from `first` on
};
/// The likely cause if the data are finite.
Cause likely_cause(const Evidence& e);

/// The remedy for a node whose inputs are finite but whose result is not. `early`: no update preceded it.
std::string remedy_of(const Node& n, DType result, bool early);

}  // namespace tutti
