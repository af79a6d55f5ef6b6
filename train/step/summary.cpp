#include "train/step/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/base/shape.h"
#include "core/base/text.h"
#include "graph/lower/cost_estimate.h"
#include "graph/lower/lower.h"

namespace tutti {
namespace {

/// Rows by path, in the order in which they are first asked for, parents first.
class Rows {
 public:
  LayerSummary& at(const std::string& path) {
    if (auto known = places_.find(path); known != places_.end()) return all[known->second];
    if (size_t dot = path.rfind('.'); dot != std::string::npos) at(path.substr(0, dot));
    places_.emplace(path, all.size());
    return all.emplace_back(LayerSummary{.path = path, .ops = {}, .output = {}});
  }
  bool contains(const std::string& path) const { return places_.contains(path); }

  std::vector<LayerSummary> all;

 private:
  std::map<std::string, size_t> places_;
};

template <class F>
void for_each_module(std::string path, F f) {
  for (;; path.resize(path.rfind('.'))) {
    f(path);
    if (path.find('.') == std::string::npos) return;
  }
}

std::string flops_text(double x) {
  for (const auto& [unit, size] : {std::pair{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}})
    if (x >= size) return fmt::format("{:.2f} {}", x / size, unit);
  return fmt::format("{:.0f}", x);
}

}  // namespace

ModelSummary summarize(const Programs& programs, const InputLayout& form, int64_t batch) {
  const Graph g = programs.training(form, batch);
  const Lowered lowered(g);
  ModelSummary summary{.layers = {}, .batch = batch};
  Rows rows;
  std::map<std::string, std::vector<std::string>> ops;  // by path
  for (uint32_t k = 0; k < g.nodes().size(); ++k) {
    const Node& n = g.nodes()[k];
    const double flops = estimate_cost(lowered.program(), std::span(&k, 1)).flops;
    summary.step_flops += flops;
    if (n.phase != Phase::forward) continue;
    summary.forward_flops += flops;
    if (n.label.empty()) continue;
    rows.at(n.label);
    std::vector<std::string>& own = ops[n.label];
    if (std::ranges::find(own, n.op->name) == own.end()) own.emplace_back(n.op->name);
    for_each_module(n.label, [&](const std::string& path) {
      rows.at(path).flops += flops;
      rows.at(path).output = g.info(n.results[0]).type;
    });
  }
  for (const nn::Parameter& p : programs.declare(form).parameters) {
    const int64_t count = num_elements(p.type.shape);
    summary.parameters += count;
    summary.parameter_bytes += num_bytes(p.type);
    if (!p.properties.frozen) summary.trained += count;
    if (p.name.find('.') == std::string::npos) continue;
    for_each_module(p.name.substr(0, p.name.rfind('.')), [&](const std::string& path) {
      if (rows.contains(path)) rows.at(path).parameters += count;
    });
  }
  for (LayerSummary& row : rows.all) row.ops = fmt::format("{}", fmt::join(ops[row.path], ", "));
  summary.layers = std::move(rows.all);
  return summary;
}

std::string to_text(const ModelSummary& summary) {
  constexpr size_t widest = 40;  // of the column of ops
  auto indented = [](const LayerSummary& row) {
    const size_t dot = row.path.rfind('.');
    const auto depth = static_cast<size_t>(std::ranges::count(row.path, '.'));
    return std::string(2 * depth, ' ') + (dot == std::string::npos ? row.path : row.path.substr(dot + 1));
  };
  auto shortened = [](std::string text) {
    if (text.size() <= widest) return text;
    return text.substr(0, text.rfind(", ", widest - 3)) + ", …";
  };
  size_t layer = 5, ops = 3, output = 6;
  for (const LayerSummary& row : summary.layers) {
    layer = std::max(layer, indented(row).size());
    ops = std::max(ops, std::min(shortened(row.ops).size(), widest));
    output = std::max(output, to_string(row.output).size());
  }
  std::string text = fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>12}  {:>9}\n", "layer", layer, "ops", ops, "output",
                                 output, "parameters", "FLOPs");
  for (const LayerSummary& row : summary.layers)
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>12}  {:>9}\n", indented(row), layer, shortened(row.ops), ops,
                        to_string(row.output), output, row.parameters ? fmt::format("{}", row.parameters) : "",
                        row.flops > 0 ? flops_text(row.flops) : "");
  text += fmt::format("\nparameters     {} ({} trained), {}\n", summary.parameters, summary.trained,
                      bytes_text(summary.parameter_bytes));
  text += fmt::format("FLOPs          {} forward, {} for a training step of {} samples\n",
                      flops_text(summary.forward_flops), flops_text(summary.step_flops), summary.batch);
  return text;
}

}  // namespace tutti
