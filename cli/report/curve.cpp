#include "cli/report/curve.h"

#include <algorithm>
#include <cmath>

namespace tutti::cli {
namespace {

void append(CurvePoint& p, const CurvePoint& next) {
  p.last = next.last;
  p.count += next.count;
  p.sum += next.sum;
  p.low = std::min(p.low, next.low);
  p.high = std::max(p.high, next.high);
}

}  // namespace

void Curve::add(int64_t step, double value) {
  if (!std::isfinite(value)) return;
  CurvePoint next{step, step, 1, value, value, value};
  if (!points_.empty() && points_.back().count < per_point_) {
    append(points_.back(), next);
    return;
  }
  if (points_.size() == most) {
    for (size_t i = 0; i < most / 2; ++i) {
      points_[i] = points_[2 * i];
      append(points_[i], points_[2 * i + 1]);
    }
    points_.resize(most / 2);
    per_point_ *= 2;
  }
  points_.push_back(next);
}

}  // namespace tutti::cli
