// Orders nodes and marks what one pass over memory can do.
#pragma once
#include <vector>

#include "graph/graph.h"

namespace tutti {

struct Grouped {
  Graph graph;                     ///< the same nodes in another order
  std::vector<TuttiGroup> groups;  ///< over that order; groups of one node are not listed
};

/// Schedules the nodes so that
/// - a node that computes a state's next value comes after every reader of its old value, so that devices update in
///   place (unless a reader depends on the next value),
/// - elementwise nodes of one shape and phase (forward, backward, update) stand together, behind the structured node
///   whose result they read: CHAIN groups of at most 32 nodes,
/// - equal elementwise nodes over many tensors stand together: BATCH groups (the optimizer).
/// Otherwise program order is kept.
Grouped group(const Graph& g);

}  // namespace tutti
