// Checks that a graph is what the passes rely on.
#pragma once
#include "graph/graph.h"

namespace tutti {

/// Throws Error(internal) naming the node when a value is read before it is produced, produced twice, or has another
/// type than its op infers; or when a state names a value that is not there.
void verify(const Graph& g);

}  // namespace tutti
