// A small graph as JSON, for replay files.
#pragma once
#include <nlohmann/json.hpp>

#include "verify/bisect/replay.h"

namespace tutti::bisect {

/// {"values": [feeds, states and constants], "nodes": […], "states": […]}; values are numbered in this order, the
/// results of the nodes after the others. Constants go to `constants` by their number, "constant/3".
nlohmann::ordered_json to_json(const Graph& g, Tensors& constants);

/// Builds it again with Graph::add. Throws Error(invalid) naming what does not fit: also where the values together have
/// more than `most_elements` elements.
Graph graph_from(const nlohmann::json& j, const Tensors& constants);
constexpr int64_t most_elements = int64_t{1} << 28;

}  // namespace tutti::bisect
