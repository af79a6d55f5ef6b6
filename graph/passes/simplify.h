// Constant folding and identities.
#pragma once
#include "graph/graph.h"

namespace tutti {

/// The graph with nodes over constants evaluated (results of at most 64 Ki elements) and identities removed: x + 0,
/// x - 0, x * 1, x / 1, a select on a constant scalar, a reshape or broadcast to the same shape, a reshape of a
/// reshape.
Graph simplify(const Graph& g);

}  // namespace tutti
