#include "cli/replay_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace tutti::cli {
namespace {

std::string list(const Types& types) {
  std::vector<std::string> texts;
  for (const TensorType& t : types) texts.push_back(to_string(t));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Types types_of(const Graph& g, const std::vector<ValueId>& values) {
  Types types;
  for (ValueId v : values) types.push_back(g.info(v).type);
  return types;
}

Shape place_of(const Graph& g, const bisect::Judgement& j) {
  return bisect::place_of(g.info(g.find_state(j.result)->after).type.shape, j.at);
}

}  // namespace

std::string in_words(const Node& n, const Types& inputs, const Types& results) {
  std::string attrs = n.attrs.to_string();
  return fmt::format("{}{}{}{}: {} -> {}", n.op->name, n.label.empty() ? "" : " at " + n.label,
                     attrs.empty() ? "" : " ", attrs, list(inputs), list(results));
}

std::string in_words(const Graph& g, const std::string& indent) {
  std::string text;
  for (const Node& n : g.nodes()) text += indent + in_words(n, types_of(g, n.inputs), types_of(g, n.results)) + "\n";
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
