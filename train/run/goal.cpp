#include "train/run/goal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/option_text.h"
#include "core/base/text.h"

namespace tutti {

Goal Goal::parse(const std::string& text) {
  if (text.empty()) return {};
  const size_t at = text.find_first_of("<>=");
  const std::string name = text.substr(0, at);
  std::string relation = at == std::string::npos ? "" : text.substr(at, text.find_first_not_of("<>=", at) - at);
  auto value = parse_number<double>(text.substr(name.size() + relation.size()));
  if (relation == "=" && (name == "loss" || name == "accuracy")) relation = name == "loss" ? "<=" : ">=";
  if (name.empty() || !value || !std::isfinite(*value) || (relation != "<=" && relation != ">="))
    throw invalid_option("target", text, "expected a metric and a value",
                         "such as accuracy=0.97, loss=0.1, or METRIC<=VALUE and METRIC>=VALUE for other metrics");
  return {name, *value, relation == "<="};
}

void Goal::expect_one_of(const std::vector<std::string>& metrics) const {
  if (metric.empty() || metric == "loss" || std::ranges::find(metrics, metric) != metrics.end()) return;
  std::vector<std::string> known = metrics;
  known.emplace_back("loss");
  throw invalid_option("target", "", fmt::format("the model has no metric '{}'", metric), "use " + alternatives(known));
}

bool Goal::reached(const EvalResult& score) const {
  if (metric.empty()) return false;
  const double x = metric == "loss" ? score.loss : score.metric(metric);
  return at_most ? x <= value : x >= value;
}

}  // namespace tutti
