// The range of integers that an input of a graph may hold if ops use it as an index.
#pragma once
#include <optional>

#include "core/base/export.h"
#include "core/base/limit.h"
#include "graph/graph.h"

namespace tutti {

/// The range allowed by the ops that use the i32 value as an index (gather, embedding, cross_entropy, …): directly,
/// rearranged (reshape, slice, transpose, …), with negative numbers counted from the end (select(x < 0, x + n, x)), or
/// with one ignored number replaced (select(x == k, 0, x)). Nullopt if no op uses it so; indices computed in other ways
/// are clamped.
TUTTI_API std::optional<Limit> index_limit(const Graph& g, Value x);

}  // namespace tutti
