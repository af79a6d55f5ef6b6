// Interval analysis of integers: whether arithmetic that stands for 64-bit integers stays within 32 bits.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// All whole numbers from `low` to `high`, as doubles: beyond 2^53 rounded.
struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

/// What a value of that dtype can hold: integers and bool; nothing for others.
TUTTI_API std::optional<Interval> range_of(DType t);

/// Per value of the graph, by id, an interval that contains its elements, as if integers had no width: an interval
/// wider than the dtype's says that the value may have wrapped. `inputs`: of feeds and states; the dtype's range for
/// others. Nothing is known of floats, of integers converted from them, and of what is computed from these.
TUTTI_API std::vector<std::optional<Interval>> intervals(const Graph& g,
                                                         const std::map<ValueId, Interval>& inputs = {});

}  // namespace tutti
