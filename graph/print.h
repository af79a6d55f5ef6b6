// Prints graphs as text, for people and golden files, and as DOT for Graphviz.
#pragma once
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// One line per feed, state, constant and node in program order, then the value of each state after the step.
TUTTI_API std::string print(const Graph& g);
/// "conv2d at 3 {stride=[1, 1]}: f32[8, 32, 6, 6], f32[64, 32, 3, 3] -> f32[8, 64, 6, 6]"
TUTTI_API std::string in_words(const Node& n, const std::vector<TensorType>& inputs,
                               const std::vector<TensorType>& results);
/// The same for a node of `g`.
TUTTI_API std::string in_words(const Graph& g, const Node& n);
/// Graphviz: nodes as boxes coloured by phase (forward, backward, update), feeds and states as ellipses.
TUTTI_API std::string print_dot(const Graph& g);

}  // namespace tutti
