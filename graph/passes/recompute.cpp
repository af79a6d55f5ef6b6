#include "graph/passes/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "core/base/status.h"
#include "core/base/text.h"
#include "graph/autodiff/custom_vjp.h"
#include "graph/passes/dce.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/simplify.h"

namespace tutti {
namespace {

/// "h.3" for "h.3.attn.q": the label up to its first numeric component; "" if there is none.
std::string block_of(const std::string& label) {
  size_t first = 0;
  for (size_t end = 0; end != std::string::npos; first = end + 1) {
    end = label.find('.', first);
    std::string_view part = std::string_view(label).substr(first, end - first);
    if (!part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c); }))
      return label.substr(0, end);
  }
  return "";
}

/// What is recomputed, by block.
struct Parts {
  std::vector<std::string> order;                 ///< of the blocks in the forward pass
  std::map<std::string, std::set<size_t>> nodes;  ///< per block
  std::vector<std::string> block;                 ///< per value: the block whose copy the backward pass reads; else ""
};

Parts parts_of(const Graph& g) {
  const std::vector<Node>& nodes = g.nodes();
  std::vector<std::string> block(nodes.size());  // per node
  std::map<std::string, std::set<std::string>> like;
  for (size_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k].phase != Phase::forward) continue;
    block[k] = block_of(nodes[k].label);
    if (!block[k].empty()) like[block[k].substr(0, block[k].rfind('.') + 1)].insert(block[k]);
  }
  for (std::string& b : block)
    if (!b.empty() && like.at(b.substr(0, b.rfind('.') + 1)).size() < 2) b.clear();

  auto inside = [&](ValueId v) {
    uint32_t k = g.info(v).producer;
    return k == no_id ? std::string() : block[k];
  };
  std::vector<bool> held(g.values().size());  // read outside the block in the forward pass, or after the step
  for (size_t k = 0; k < nodes.size(); ++k)
    for (ValueId i : nodes[k].inputs)
      if (nodes[k].phase != Phase::backward && inside(i) != block[k]) held[i] = true;
  for (const State& s : g.states())
    if (s.after != no_id) held[s.after] = true;

  Parts parts{{}, {}, std::vector<std::string>(g.values().size())};
  auto need = [&](auto& self, ValueId v) -> void {
    if (held[v] || inside(v).empty()) return;
    uint32_t k = g.info(v).producer;
    if (!parts.nodes[block[k]].insert(k).second) return;
    for (ValueId i : nodes[k].inputs) self(self, i);
  };
  for (const Node& n : nodes)
    for (ValueId i : n.inputs)
      if (n.phase == Phase::backward && !held[i] && !inside(i).empty()) {
        parts.block[i] = inside(i);
        need(need, i);
      }
  for (const std::string& b : block)
    if (parts.nodes.contains(b) && std::ranges::find(parts.order, b) == parts.order.end()) parts.order.push_back(b);
  return parts;
}

/// Without the nodes of custom_vjp, and without backward nodes of theirs that stand in the forward pass.
std::optional<Graph> settled(const Graph& g) {
  bool custom = std::ranges::any_of(g.nodes(), [](const Node& n) { return n.op == &custom_vjp_op; });
  return custom ? std::optional(dce(simplify(g))) : std::nullopt;
}

}  // namespace

std::vector<std::string> blocks(const Graph& g) {
  std::optional<Graph> without = settled(g);
  return parts_of(without ? *without : g).order;
}

Graph recompute(const Graph& g, const std::vector<std::string>& chosen) {
  if (std::optional<Graph> without = settled(g)) return recompute(*without, chosen);
  Parts parts = parts_of(g);
  for (const std::string& b : chosen)
    if (!parts.nodes.contains(b))
      throw invalid(fmt::format("recompute: the model has no block '{}'", b),
                    parts.order.empty() ? "the model has no blocks" : "its blocks are " + alternatives(parts.order));
  Rewriter r(g);
  std::set<std::string> waiting(chosen.begin(), chosen.end());
  auto again = [&](const std::string& block) {
    std::map<ValueId, Value> before;  // the values that copies of other blocks read
    for (size_t k : parts.nodes.at(block)) {
      Node copy = g.nodes()[k];
      copy.phase = Phase::recompute;
      for (ValueId v : copy.results) before.emplace(v, r[v]);
      r.copy(copy);
    }
    for (const auto& [v, value] : before)
      if (parts.block[v].empty()) r.set(v, value);
  };
  for (const Node& n : g.nodes()) {
    for (ValueId i : n.inputs)
      if (n.phase == Phase::backward && waiting.erase(parts.block[i])) again(parts.block[i]);
    r.copy(n);
  }
  return r.finish();
}

}  // namespace tutti
