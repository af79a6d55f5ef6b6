// Why a loss or a state is not finite, and what helps: from what the host still has, and from the node where it began.
#pragma once
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "data/source.h"
#include "graph/graph.h"
#include "train/precision.h"

namespace tutti {

/// "NaN", "infinite" or "-infinite".
std::string not_finite_in_words(double x);

/// A cause in words, "" where none is known, and its remedy.
struct Cause {
  std::string text, remedy;
};

/// The first NaN or infinity of those samples: "sample 7 of data set d is NaN in column 'input' at [3]"; "": all are
/// finite.
std::string not_finite_in(const data::Source& set, std::span<const int32_t> samples);

/// The samples of the last steps, as many as a cause is looked for in.
class RecentSamples {
 public:
  void clear() { steps_.clear(); }
  void ran(std::span<const int32_t> samples);
  /// not_finite_in() of the step before the last `back` ones, of that set; "" where it is not known any more.
  std::string not_finite(const data::Source& set, int64_t back) const;

 private:
  std::deque<std::vector<int32_t>> steps_;
};

/// Of samples that are not finite, as not_finite_in() names them.
Cause data_cause(const std::string& samples);

/// What a run knows of itself when a step's loss or state is not finite.
struct Evidence {
  int64_t step;   ///< from 1
  int64_t first;  ///< the run's first step
  Precision precision;
  bool overflow;                  ///< a loss is not finite, and in f16 the gradients' scale is not the cause
  bool replays;                   ///< whether the caller can run steps again: nan_check
  std::span<const float> losses;  ///< of the steps from `first` on
};
/// The likely cause where the data are finite.
Cause likely_cause(const Evidence& e);

/// The remedy where a node of finite inputs gave a result that is not finite. `early`: no update came before it.
std::string remedy_of(const Node& n, DType result, bool early);

}  // namespace tutti
