// Orders nodes and forms groups that run in one pass over memory.
#pragma once
#include <vector>

#include "graph/graph.h"

namespace tutti {

struct Grouped {
  Graph graph;                     ///< the same nodes, reordered
  std::vector<TuttiGroup> groups;  ///< in that order; groups of one node are not listed
};

/// Schedules the nodes so that
/// - a node that computes a state's next value comes after all readers of its old value, so that devices can update
///   in place (unless a reader depends on the next value),
/// - elementwise nodes of one shape and phase (forward, backward, update) are adjacent, after the structured node
///   whose result they read: CHAIN groups of at most 32 nodes,
/// - equal elementwise nodes over many tensors are adjacent: BATCH groups (the optimizer).
/// Otherwise keeps program order.
Grouped group(const Graph& g);

}  // namespace tutti
