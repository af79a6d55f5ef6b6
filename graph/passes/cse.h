// Common subexpression elimination.
#pragma once
#include "graph/graph.h"

namespace tutti {

/// The graph with equal nodes (op, attributes, inputs) and equal constants merged. Every op is pure, random ones too.
Graph cse(const Graph& g);

}  // namespace tutti
