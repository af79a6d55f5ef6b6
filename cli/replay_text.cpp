#include "cli/replay_text.h"

#include <fmt/format.h>

#include <cmath>

namespace tutti::cli {
namespace {

Shape place_of(const Graph& g, const bisect::Judgement& j) {
  return bisect::place_of(g.info(g.find_state(j.result)->after).type.shape, j.at);
}

}  // namespace

std::string in_words(const Graph& g, const std::string& indent) {
  std::string text;
  for (const Node& n : g.nodes()) text += indent + in_words(g, n) + "\n";
  return text;
}

std::string place_in_words(const Graph& g, const bisect::Judgement& j) {
  return fmt::format("{} of {}", to_string(place_of(g, j)), j.result);
}

std::string share_in_words(const bisect::Judgement& j) {
  if (std::isinf(j.share)) return "differs where it must be equal, or is not a number";
  return j.ok ? fmt::format("{:.2g} of its bound", j.share) : fmt::format("{:.3g} times its bound", j.share);
}

nlohmann::ordered_json document(const Graph& g, const bisect::Judgement& j) {
  return {{"ok", j.ok},     {"result", j.result}, {"index", place_of(g, j)},
          {"value", j.got}, {"truth", j.want},    {"share_of_bound", j.share},
          {"why", j.text}};
}

}  // namespace tutti::cli
