// Texts of bisect and replay about nodes and wrong elements.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "graph/print.h"
#include "verify/bisect/replay.h"

namespace tutti::cli {

/// All nodes of a graph, one per line.
std::string in_words(const Graph& g, const std::string& indent);

/// "[3, 0] of %95": the worst element.
std::string place_in_words(const Graph& g, const bisect::Judgement& j);
/// "0.12345  210 times its bound" or "0.12  0.03 of its bound".
std::string share_in_words(const bisect::Judgement& j);
nlohmann::ordered_json document(const Graph& g, const bisect::Judgement& j);

}  // namespace tutti::cli
