// Which numbers an integer input of a graph may hold, where ops take it as an index.
#pragma once
#include <optional>

#include "core/base/export.h"
#include "core/base/limit.h"
#include "graph/graph.h"

namespace tutti {

/// What the ops that read the i32 value as an index (gather, embedding, cross_entropy, …) allow, as it is, moved
/// (reshape, slice, transpose, …), counted from the end where it is negative (select(x < 0, x + n, x)), or without one
/// number that does not count (select(x == k, 0, x)). Nothing where no op does; an index that is computed in other ways
/// is clamped.
TUTTI_API std::optional<Limit> index_limit(const Graph& g, Value x);

}  // namespace tutti
