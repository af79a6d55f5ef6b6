#include "graph/lower/cost_estimate.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/shape.h"

namespace tutti {
namespace {

template <class T>
std::span<const T> items(const TuttiArray& a) {
  return {static_cast<const T*>(a.at), a.count};
}

class Counter {
 public:
  explicit Counter(const TuttiProgram& p)
      : values_(items<TuttiValue>(p.values)), nodes_(items<TuttiNode>(p.nodes)), readers_(values_.size()) {
    for (uint32_t k = 0; k < nodes_.size(); ++k)
      for (uint32_t i : inputs(nodes_[k])) readers_[i].push_back(k);
    for (const TuttiState& s : items<TuttiState>(p.states))
      if (s.after != TUTTI_NONE) readers_[s.after].push_back(TUTTI_NONE);
  }

  double flops(const TuttiNode& n) const {
    std::string_view op = n.op;
    if (op.ends_with("_recurrence") || op.ends_with("_recurrence_grad")) {  // products of states and w_hh, step by step
      bool gradient = op.ends_with("_grad");
      uint32_t w_hh = n.inputs[op == "lstm_recurrence" ? 2 : 1], gates = n.inputs[gradient ? 2 : 3];
      return 2 * elements(gates) * static_cast<double>(shape(w_hh)[1]);
    }
    if (op == "attention" || op == "attention_grad") return attention(n, op.ends_with("_grad"));
    if (n.results[0] == TUTTI_NONE) return 0;
    if (op == "matmul") {
      std::span<const int64_t> a = shape(n.inputs[0]);
      return 2 * elements(n.results[0]) * static_cast<double>(a[a.size() - (flag(n, "ta") ? 2 : 1)]);
    }
    if (op == "conv2d" || op == "conv2d_nhwc") return 2 * elements(n.results[0]) * taps(n.inputs[1]);
    if (op == "conv2d_dx" || op == "conv2d_nhwc_dx") return 2 * elements(n.inputs[0]) * taps(n.inputs[1]);
    if (op == "conv2d_dw" || op == "conv2d_nhwc_dw") return 2 * elements(n.inputs[1]) * taps(n.results[0]);
    return 0;
  }

  /// Bytes moved by nodes that run in one pass over memory.
  double bytes(std::span<const uint32_t> pass) const {
    std::map<uint32_t, double> moved;  // by value; repeated reads count once
    std::vector<uint32_t> inside;
    for (uint32_t k : pass) {
      const TuttiNode& n = nodes_[k];
      std::string_view op = n.op;
      if (op == "reshape" && pass.size() == 1) return 0;
      for (uint32_t i = 0; i < n.input_count; ++i) {
        uint32_t v = n.inputs[i];
        if (std::ranges::find(inside, v) != inside.end()) continue;
        bool part = i == 0 && (op == "gather" || op == "slice") && n.results[0] != TUTTI_NONE;
        moved[v] = std::max(moved[v], part ? std::min(size(v), size(n.results[0])) : size(v));
      }
      for (uint32_t r : std::span(n.results, n.result_count))
        if (r != TUTTI_NONE) inside.push_back(r);
    }
    double sum = 0;
    for (const auto& [value, bytes] : moved) sum += bytes;
    auto outside = [&](uint32_t reader) { return std::ranges::find(pass, reader) == pass.end(); };
    for (uint32_t r : inside)
      if (std::ranges::any_of(readers_[r], outside)) sum += size(r);
    return sum;
  }

 private:
  static std::span<const uint32_t> inputs(const TuttiNode& n) { return {n.inputs, n.input_count}; }
  std::span<const int64_t> shape(uint32_t value) const { return {values_[value].dims, values_[value].rank}; }
  double elements(uint32_t value) const { return static_cast<double>(num_elements(shape(value))); }
  double size(uint32_t value) const {
    return elements(value) * static_cast<double>(size_of(static_cast<DType>(values_[value].dtype)));
  }
  /// The products in attention's decomposition: every query with every key, or with those up to its own position.
  double attention(const TuttiNode& n, bool gradient) const {
    std::span<const int64_t> q = shape(n.inputs[0]);
    auto heads = static_cast<double>(q[0] * q[1]), queries = static_cast<double>(q[2]);
    auto all = static_cast<double>(shape(n.inputs[1])[2]), first = std::min(queries, all);
    double pairs = heads * (flag(n, "causal") ? first * (first + 1) / 2 + (queries - first) * all : queries * all);
    auto keys = static_cast<double>(q[3]), values = static_cast<double>(shape(n.inputs[2])[3]);
    if (!gradient) return 2 * pairs * (keys + values);
    bool dq = n.results[0] != TUTTI_NONE, dk = n.results[1] != TUTTI_NONE, dv = n.results[2] != TUTTI_NONE;
    return 2 * pairs * (keys * (1 + dq + dk) + values * ((dq || dk) + dv));
  }
  /// Multiply-adds per element of a convolution's result, from its weights [O, C/groups, ky, kx].
  double taps(uint32_t weights) const { return elements(weights) / static_cast<double>(shape(weights)[0]); }
  static bool flag(const TuttiNode& n, std::string_view name) {
    for (const TuttiAttr& a : items<TuttiAttr>(n.attrs))
      if (a.name == name && a.kind == TUTTI_ATTR_I64 && a.count == 1) return *static_cast<const int64_t*>(a.data) != 0;
    return false;
  }

  std::span<const TuttiValue> values_;
  std::span<const TuttiNode> nodes_;
  std::vector<std::vector<uint32_t>> readers_;  // per value: nodes that read it; TUTTI_NONE for a state
};

}  // namespace

CostEstimate estimate_cost(const TuttiProgram& program) {
  Counter count(program);
  std::span<const TuttiNode> nodes = items<TuttiNode>(program.nodes);
  std::vector<uint32_t> end(nodes.size());  // per first node of a group: the end of the group
  for (const TuttiGroup& g : items<TuttiGroup>(program.groups)) end[g.first] = g.first + g.count;
  CostEstimate cost;
  for (const TuttiNode& n : nodes) cost.flops += count.flops(n);
  for (uint32_t k = 0; k < nodes.size();) {
    std::vector<uint32_t> pass;
    for (uint32_t last = std::max(end[k], k + 1); k < last; ++k) pass.push_back(k);
    cost.bytes += count.bytes(pass);
  }
  return cost;
}

CostEstimate estimate_cost(const TuttiProgram& program, std::span<const uint32_t> nodes) {
  Counter count(program);
  CostEstimate cost{0, count.bytes(nodes)};
  for (uint32_t k : nodes) cost.flops += count.flops(items<TuttiNode>(program.nodes)[k]);
  return cost;
}

}  // namespace tutti
