// A small graph as JSON, for replay files.
#pragma once
#include <nlohmann/json.hpp>

#include "verify/bisect/replay.h"

namespace tutti::bisect {

/// {"values": [feeds, states and constants], "nodes": […], "states": […]}; values are numbered in this order, node
/// results last. Constants are stored in `constants` by their number, "constant/3".
nlohmann::ordered_json to_json(const Graph& g, Tensors& constants);

/// Rebuilds the graph with Graph::add. Throws Error(invalid) naming the invalid part, also if all values together have
/// more than `most_elements` elements.
Graph graph_from(const nlohmann::json& j, const Tensors& constants);
constexpr int64_t most_elements = int64_t{1} << 28;

}  // namespace tutti::bisect
