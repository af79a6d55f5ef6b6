// The update of a parameter as one node.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tutti {

/// The last elementwise ops that compute the states `names` of one shape, of the nodes from `first` on, become one node
/// with several results, so that devices compute them in one pass, as they do the op of a built-in optimizer. What
/// these ops read, such as a sum, stays. `label` names the node. Does nothing where one op computes all.
void make_one_node(Graph& g, size_t first, const std::vector<std::string>& names, const std::string& label);

}  // namespace tutti
