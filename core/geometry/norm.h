// Normalizations: which elements share a mean and a variance, and how weight and bias are indexed.
#pragma once
#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

/// x as [outer, lines, inner]: the elements of one line share a mean and a variance.
struct NormGeometry {
  int64_t outer, lines, inner;
  bool per_line;  ///< weight and bias have one element per line; else one per position within a line (outer is 1 then)
  Ints axes;      ///< the axes of x that are reduced
  Shape kept;     ///< shape of a statistic that broadcasts to x
  Shape statistics;  ///< shape of a statistic as a result
  Shape parameters;  ///< shape of weight and bias

  int64_t count() const { return outer * inner; }
};

/// One line per channel, over all elements of the channel in [N, C, …]. Throws Error for fewer than two axes or two
/// elements per channel.
NormGeometry batch_norm_geometry(const Shape& x);
/// One line per index of the axes before the attribute normalized_shape. Throws Error unless the shape of x ends with
/// it.
NormGeometry layer_norm_geometry(const Shape& x, const Attrs& a);

}  // namespace tutti
