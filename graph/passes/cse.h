// Common subexpression elimination.
#pragma once
#include "graph/graph.h"

namespace tutti {

/// Merges equal nodes (op, attributes, inputs) and equal constants. All ops are pure, including random ones.
Graph cse(const Graph& g);

}  // namespace tutti
