// Normalisations: which elements share a mean and a variance, and where weight and bias apply.
#pragma once
#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

/// x as [outer, lines, inner]: the elements of one line share their statistics.
struct NormGeometry {
  int64_t outer, lines, inner;
  bool per_line;     ///< weight and bias have one element per line; else one per place in a line (outer is 1 then)
  Ints axes;         ///< of x that statistics are taken over
  Shape kept;        ///< of a statistic that broadcasts to x
  Shape statistics;  ///< of a statistic as a result
  Shape parameters;  ///< of weight and bias

  int64_t count() const { return outer * inner; }
};

/// One line per channel, of all elements of [N, C, …]. Throws Error for fewer than two axes or elements per channel.
NormGeometry batch_norm_geometry(const Shape& x);
/// One line per place in the axes before the attribute normalized_shape. Throws Error unless x ends with that.
NormGeometry layer_norm_geometry(const Shape& x, const Attrs& a);

}  // namespace tutti
