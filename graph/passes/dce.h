// Dead code elimination.
#pragma once
#include "graph/graph.h"

namespace tutti {

/// Removes nodes that no state depends on. Feeds and states are kept.
Graph dce(const Graph& g);

}  // namespace tutti
