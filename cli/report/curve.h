// A scalar by step, in bounded memory for runs of any length.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::cli {

/// Consecutive steps, aggregated to one point of a chart.
struct CurvePoint {
  int64_t first = 0, last = 0, count = 0;  ///< range of steps, and number of values in it
  double sum = 0, low = 0, high = 0;
  double mean() const { return sum / static_cast<double>(count); }
  double step() const { return static_cast<double>(first + last) / 2; }
};

/// The points of one curve. Each aggregates one step at first, later 2, 4, 8 …, so that there are at most `most`.
class Curve {
 public:
  static constexpr size_t most = 800;
  /// Steps must be ascending. Values that are not finite are ignored.
  void add(int64_t step, double value);
  const std::vector<CurvePoint>& points() const { return points_; }

 private:
  std::vector<CurvePoint> points_;
  int64_t per_point_ = 1;
};

}  // namespace tutti::cli
