// Fusion of chains of elementwise nodes, and fusion into products.
#include <fmt/format.h>

#include <algorithm>

#include "sdk/plan/schedule.h"

namespace tutti::sdk {

std::vector<uint32_t> Schedule::chain(uint32_t k, size_t most_arguments, bool mixed) {
  std::vector<uint32_t> nodes = {k};
  const Shape& shape = *result_shape(p_.nodes[k]);
  // A node that runs early may have successors that cannot run yet.
  auto there = [&](uint32_t v) {
    return !held_[v].empty() ||
           std::ranges::any_of(nodes, [&](uint32_t i) { return std::ranges::count(p_.nodes[i].results, v) > 0; });
  };
  for (uint32_t j = k + 1; j < chain_end_[k] && !done_[j]; ++j) {
    const Node& n = p_.nodes[j];
    const Shape* other = result_shape(n);
    if (!n.elementwise() || !other || *other != shape || (!mixed && n.flags != p_.nodes[k].flags) || !fuses(j) ||
        !std::ranges::all_of(n.inputs, there))
      break;
    nodes.push_back(j);
    finish(j);
    if (most_arguments >= p_.values.size() || arguments(nodes) <= most_arguments) continue;
    nodes.pop_back();
    undo(j);
    break;
  }
  if (trace_ && nodes.size() > 1) trace_(fmt::format("nodes {}..{} → one pass", k, nodes.back()));
  return nodes;
}

size_t Schedule::arguments(std::span<const uint32_t> nodes) const {
  std::set<uint32_t> made, used;
  for (uint32_t j : nodes) {
    for (uint32_t v : p_.nodes[j].inputs)
      if (!made.contains(v)) used.insert(v);
    made.insert(p_.nodes[j].results.begin(), p_.nodes[j].results.end());
  }
  made.erase(TUTTI_NONE);
  return used.size() +
         static_cast<size_t>(std::count_if(made.begin(), made.end(), [&](uint32_t v) { return remaining_[v] > 0; }));
}

bool Schedule::exists(uint32_t v) const {
  if (!held_[v].empty()) return true;
  uint32_t k = reshape_of_[v];
  return k != TUTTI_NONE && exists(p_.nodes[k].inputs[0]);
}

void Schedule::ensure(uint32_t v) {
  if (!held_[v].empty()) return;
  uint32_t k = reshape_of_[v];
  ensure(p_.nodes[k].inputs[0]);
  node(k);
}

// ---- nodes after a product

uint32_t Schedule::follower(uint32_t v) const {
  uint32_t k = readers_[v].size() == 1 && remaining_[v] == 1 ? readers_[v][0] : TUTTI_NONE;
  if (k == TUTTI_NONE || done_[k]) return TUTTI_NONE;
  const Node& n = p_.nodes[k];
  bool plain = n.elementwise() && n.version == 1 && n.flags == 0 && n.unknown.empty() && n.results.size() == 1;
  return plain && n.results[0] != TUTTI_NONE && p_.type(n.results[0]) == p_.type(v) ? k : TUTTI_NONE;
}

uint32_t Schedule::bias_behind(uint32_t result, size_t from_last) const {
  uint32_t add = follower(result);
  uint32_t bias = add == TUTTI_NONE ? TUTTI_NONE : added_to(p_.nodes[add], result);
  bool fits = bias != TUTTI_NONE && is_bias(p_.type(bias), p_.type(result), from_last) && exists(bias);
  return fits ? bias : TUTTI_NONE;
}

uint32_t Schedule::behind_reshapes(uint32_t v, std::vector<uint32_t>& reshapes) const {
  while (readers_[v].size() == 1 && remaining_[v] == 1) {
    const uint32_t k = readers_[v][0], result = p_.nodes[k].results.empty() ? TUTTI_NONE : p_.nodes[k].results[0];
    if (result == TUTTI_NONE || done_[k] || reshape_of_[result] != k) break;
    const Shape &from = p_.type(v).shape, &to = p_.type(result).shape;
    if (from.empty() || to.empty() || from.back() != to.back()) break;
    reshapes.push_back(k);
    v = result;
  }
  return v;
}

PostOps Schedule::post_ops_of(uint32_t k, const Capabilities& can, bool through) const {
  const Node& n = p_.nodes[k];
  PostOps post_ops{.result = n.results[0]};
  auto empty = [&](uint32_t v) { return num_elements(p_.type(v).shape) == 0; };
  if (n.results[0] == TUTTI_NONE || (!can.bias && !can.relu && !can.limits)) return post_ops;
  if (std::any_of(n.inputs.begin(), n.inputs.end(), empty)) return post_ops;
  std::vector<uint32_t> between;
  auto next = [&] {  // the value that the next of these nodes reads
    between.clear();
    return through ? behind_reshapes(post_ops.result, between) : post_ops.result;
  };
  auto add = [&](uint32_t node) {
    post_ops.reshapes.insert(post_ops.reshapes.end(), between.begin(), between.end());
    post_ops.result = p_.nodes[node].results[0];
    return node;
  };
  if (can.bias) {
    const uint32_t y = next();
    post_ops.bias = bias_behind(y, n.op == "conv2d" ? 2 : 0);
    if (post_ops.bias != TUTTI_NONE) post_ops.add = add(follower(y));
  }
  uint32_t relu = can.relu || can.limits ? follower(next()) : TUTTI_NONE;
  if (relu != TUTTI_NONE && (can.limits ? bounds_of(p_.nodes[relu]).has_value() : is_relu(p_.nodes[relu])))
    post_ops.relu = add(relu);
  return post_ops;
}

void Schedule::take(const PostOps& post_ops, std::vector<uint32_t>& inputs, std::vector<uint32_t>& results) {
  if (post_ops.add != TUTTI_NONE) {
    ensure(post_ops.bias);
    finish(post_ops.add);
    inputs.push_back(post_ops.bias);
  }
  if (post_ops.relu != TUTTI_NONE) finish(post_ops.relu);
  for (uint32_t k : post_ops.reshapes) finish(k);
  results[0] = post_ops.result;
}

// ---- sums next to a product

bool Schedule::with_operand_sum(uint32_t k) {
  bool is_sum = p_.nodes[k].op == "sum";
  if (!is_sum && !sums_operands(p_.nodes[k])) return false;
  for (uint32_t v : p_.nodes[k].inputs)
    for (uint32_t other : readers_[v])
      if (other != k && !done_[other] && (is_sum ? runs_with_sum(other, k) : runs_with_sum(k, other))) return true;
  return false;
}

bool Schedule::runs_with_sum(uint32_t product, uint32_t sum) {
  if (!sums_operands(p_.nodes[product])) return false;
  OperandSum which = summed_operand(p_, p_.nodes[product], p_.nodes[sum]);
  if (which == OperandSum::none) return false;
  for (uint32_t k : {product, sum}) {
    const Node& n = p_.nodes[k];
    if (n.results.size() != 1 || n.results[0] == TUTTI_NONE) return false;
    for (uint32_t v : n.inputs)
      if (num_elements(p_.type(v).shape) == 0 || !exists(v)) return false;
  }
  const char* entry = product_with_sum(product, sum, which);
  if (entry && trace_)
    trace_(fmt::format("node {} {} and node {} sum → {}", product, p_.nodes[product].op, sum, entry));
  return entry != nullptr;
}

}  // namespace tutti::sdk
