// Checks the invariants of a graph.
#pragma once
#include "graph/graph.h"

namespace tutti {

/// Throws Error(internal) naming the node if a value is read before it is produced, produced twice, or has another type
/// than its op infers; or if a state refers to a value that does not exist.
void verify(const Graph& g);

}  // namespace tutti
