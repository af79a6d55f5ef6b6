// Reductions over axes.
#pragma once
#include <cstdint>

#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

enum class ReduceOp : uint8_t { sum, mean, prod, max, min };

struct ReductionGeometry {
  Ints axes;      ///< sorted, unique, not negative
  Shape kept;     ///< the shape with every reduced axis at size 1
  Shape result;   ///< `kept`, or without these axes
  int64_t count;  ///< how many elements go into one of the result
};

/// By the attributes axes (all when empty) and keep. Throws Error for axes that are not there and, where `some`, when
/// an element of the result would be reduced from nothing.
ReductionGeometry reduction_geometry(const Shape& x, const Attrs& a, bool some = false);

/// A part of a reduction: [a, r, b] → [a, b].
struct ReductionStage {
  int64_t a, r, b;
};
/// Neighbouring axes merged, one stage per run of reduced axes, the innermost first; `axes` sorted, unique, not
/// negative. None where nothing but axes of size 1 is reduced.
std::vector<ReductionStage> reduction_stages(const Shape& x, const Ints& axes);

}  // namespace tutti
