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

/// The order of exact numerics (docs/EXACT.md): a stage is cut into pieces of so many elements, and element i of a
/// piece is folded into lane i % exact_sum_lanes.
constexpr int64_t exact_sum_piece = 4096, exact_sum_lanes = 16;
/// A product's sum is cut into parts of so many terms, each in order, and the parts are added in order.
constexpr int64_t exact_product_part = 1024;

/// One step of a reduction: [a, r, b] → [a, b].
struct ReductionStage {
  int64_t a, r, b;
};
/// Merges adjacent axes into one stage per run of reduced axes, the innermost first; `axes` sorted, unique, not
/// negative. Empty if only axes of size 1 are reduced.
std::vector<ReductionStage> reduction_stages(const Shape& x, const Ints& axes);

}  // namespace tutti
