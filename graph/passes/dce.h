// Dead code elimination.
#pragma once
#include "graph/graph.h"

namespace tutti {

/// The graph without the nodes that no state needs. Feeds and states stay.
Graph dce(const Graph& g);

}  // namespace tutti
