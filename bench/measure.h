// Measures cases on lanes, in turns: every repetition goes once round all lanes, so that a machine that is busy for a
// while is so for all of them.
#pragma once
#include <functional>

#include "bench/lane.h"

namespace tutti::bench {

struct MeasureOptions {
  int repetitions = 10;  ///< per case and lane, unless its time runs out before
  double seconds = 2;    ///< per case and lane; a lane whose single run is longer does at least two, or one above 4x
  bool quick = false;    ///< small shapes for the peaks
  std::vector<int64_t> products = {}, sums = {};  ///< sides of the squares for the peaks; empty: from small to large
  /// Called with what is measured next.
  std::function<void(const std::string&)> watch = {};
  /// Asked between any two runs; true ends the measuring at once.
  std::function<bool()> stop = {};
  bool stopped() const { return stop && stop(); }
};

/// The peaks of every device in each of the precisions: products of growing squares, sums of two growing tensors. Where
/// it was stopped, those that were measured until then.
void measure_peaks(std::vector<LaneInfo>& infos, const std::vector<std::unique_ptr<Lane>>& lanes,
                   const std::vector<Precision>& precisions, const MeasureOptions& options);

/// One measurement per lane. A lane that declines the case, or fails, says so in its status; the others go on. Where it
/// was stopped, those of the lanes alone that had a turn.
std::vector<Measurement> measure(const Case& c, const std::vector<Lane*>& lanes, const MeasureOptions& options);

/// Fills in `bound` and `share` from the peaks of the measurement's lane.
void relate(Measurement& m, const Peaks& peaks);
/// The same for all measurements of a result, after raising the peaks of products to what its cases reached at best: a
/// device was busy when its peaks were measured, or likes other shapes better.
void relate_all(Result& result);

}  // namespace tutti::bench
