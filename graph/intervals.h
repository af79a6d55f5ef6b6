// Interval analysis of integers: whether arithmetic that represents 64-bit integers stays within 32 bits.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// The integers from `low` to `high`, both included; bounds beyond 2^53 are rounded to double.
struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

/// The range of a dtype: integers and bool; nullopt for other dtypes.
TUTTI_API std::optional<Interval> range_of(DType t);

/// Per value of the graph, by id, an interval that contains its elements, computed without integer overflow: an
/// interval wider than the dtype's range means that the value may have wrapped. `inputs`: intervals of feeds and
/// states; others have the dtype's range. Nullopt for floats, integers converted from floats, and everything computed
/// from these.
TUTTI_API std::vector<std::optional<Interval>> intervals(const Graph& g,
                                                         const std::map<ValueId, Interval>& inputs = {});

}  // namespace tutti
