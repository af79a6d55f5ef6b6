// A number by step, in bounded memory, however long the run.
#pragma once
#include <cstdint>
#include <vector>

namespace tutti::cli {

/// Steps that follow each other, as one place of a chart.
struct CurvePoint {
  int64_t first = 0, last = 0, count = 0;  ///< steps, and how many of them had a number
  double sum = 0, low = 0, high = 0;
  double mean() const { return sum / static_cast<double>(count); }
  double step() const { return static_cast<double>(first + last) / 2; }
};

/// The points of one curve: each holds one step at first, later 2, 4, 8 …, so that there are never more than `most`.
class Curve {
 public:
  static constexpr size_t most = 800;
  /// Steps come in ascending order. A number that is not finite is left out.
  void add(int64_t step, double value);
  const std::vector<CurvePoint>& points() const { return points_; }

 private:
  std::vector<CurvePoint> points_;
  int64_t per_point_ = 1;
};

}  // namespace tutti::cli
