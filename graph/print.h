// Graphs as text that people and golden files read, and as DOT that Graphviz draws.
#pragma once
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// One line per feed, state, constant and node in program order, then what each state holds after the step.
TUTTI_API std::string print(const Graph& g);
/// Graphviz: nodes as boxes coloured by phase (forward, backward, update), feeds and states as ellipses.
TUTTI_API std::string print_dot(const Graph& g);

}  // namespace tutti
