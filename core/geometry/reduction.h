// Reductions over axes.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

enum class ReduceOp : uint8_t { sum, mean, prod, max, min };
/// The reduction that an op of this name is, if any.
std::optional<ReduceOp> reduce_op(std::string_view op);

struct ReductionGeometry {
  Ints axes;      ///< sorted, unique, not negative
  Shape kept;     ///< the shape with every reduced axis at size 1
  Shape result;   ///< `kept`, or without the reduced axes
  int64_t count;  ///< number of elements reduced into each element of the result
};

/// From the attributes axes (all if empty) and keep. Throws Error for axes out of range and, if `some`, for a reduction
/// over no elements.
ReductionGeometry reduction_geometry(const Shape& x, const Attrs& a, bool some = false);

/// One step of a reduction: [a, r, b] → [a, b].
struct ReductionStage {
  int64_t a, r, b;
};
/// Merges adjacent axes into one stage per run of reduced axes, the innermost first; `axes` sorted, unique, not
/// negative. Empty if only axes of size 1 are reduced.
std::vector<ReductionStage> reduction_stages(const Shape& x, const Ints& axes);

}  // namespace tutti
