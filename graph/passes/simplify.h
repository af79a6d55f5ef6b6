// Constant folding and removal of identities.
#pragma once
#include "graph/graph.h"

namespace tutti {

/// Evaluates nodes whose inputs are constants (results of at most 64 Ki elements) and removes identities: x + 0, x - 0,
/// x * 1, x / 1, a select on a constant scalar, a reshape or broadcast to the same shape, a reshape of a reshape.
Graph simplify(const Graph& g);

}  // namespace tutti
