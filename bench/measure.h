// Measures cases on lanes in turns: every repetition runs once on each lane, so that other load on the machine affects
// all lanes alike.
#pragma once
#include <functional>

#include "bench/lane.h"

namespace tutti::bench {

struct MeasureOptions {
  int repetitions = 10;  ///< per case and lane, unless `seconds` end earlier
  double seconds = 2;    ///< per case and lane; at least two runs if one takes longer, but one if it exceeds 4x
  bool quick = false;    ///< small shapes for the peaks
  /// Sizes of the square matrices for the peaks; empty: a default range.
  std::vector<int64_t> products = {}, sums = {};
  /// Called with the name of the next measurement.
  std::function<void(const std::string&)> watch = {};
  /// Called between runs; returning true stops immediately.
  std::function<bool()> stop = {};
  bool stopped() const { return stop && stop(); }
};

/// Measures the peaks of every device in each precision: products of square matrices and sums of two tensors of growing
/// size. If stopped, keeps the peaks measured so far.
void measure_peaks(std::vector<LaneInfo>& infos, const std::vector<std::unique_ptr<Lane>>& lanes,
                   const std::vector<Precision>& precisions, const MeasureOptions& options);

/// Returns one measurement per lane. A lane that declines the case or fails sets its status; the others continue. If
/// stopped, returns only lanes that ran at least once.
std::vector<Measurement> measure(const Case& c, const std::vector<Lane*>& lanes, const MeasureOptions& options);

/// Sets `bound` and `share` from the peaks of the measurement's lane.
void relate(Measurement& m, const Peaks& peaks);
/// The same for all measurements of a result, after raising product peaks to the best rate of its cases, which can
/// exceed the measured peak if the device was busy or other shapes are faster.
void relate_all(Result& result);

}  // namespace tutti::bench
