// Elementwise nodes: a chain becomes one pass, a horizontal_group of a batch group one launch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "sdk/rendered/planner.h"

namespace tutti::sdk {
namespace {

/// Whether two passes compute the same function of different tensors.
bool same_code(const Fusion& f, const Fusion& g, const Program& program) {
  auto same = [](const TuttiInstr& x, const TuttiInstr& y) {
    return x.code == y.code && x.dtype == y.dtype && x.a == y.a && x.b == y.b && x.c == y.c;
  };
  return f.exact == g.exact && std::equal(f.code.begin(), f.code.end(), g.code.begin(), g.code.end(), same) &&
         f.types(program) == g.types(program);
}

constexpr int64_t large = 1 << 15;    // number of elements that justifies a separate launch
constexpr uint32_t look_ahead = 512;  // nodes behind a pass that may join its launch

}  // namespace

bool Planner::fuses(uint32_t k) const {
  const RenderChoice& choice = cache_.choice(p_, k);
  return choice.entry && choice.entry->can.elementwise;
}

Fusion Planner::fused(std::span<const uint32_t> nodes) const {
  return fuse(p_, nodes, ExactRounding::by_target, [&](uint32_t v) { return remaining_[v] > 0; });
}

void Planner::elementwise(uint32_t k, const char* entry) {
  if (batch(k, entry)) return;
  std::vector<uint32_t> nodes = chain(k, traits_.max_arguments, false);
  Fusion f = fused(nodes);
  if (same_chains(nodes, f, entry)) return;
  if (f.outputs.empty() || num_elements(f.dims) == 0) {
    for (uint32_t v : f.outputs) place_result(v, "nothing");
    return;
  }
  if (num_elements(f.dims) <= large) {
    std::vector<std::pair<uint32_t, Fusion>> list = {{k, f}};
    add_small(list);
    if (list.size() > 1) return launch_batch(list, describe(entry, k, nodes.size() + list.size() - 2));
  }
  std::string name = describe(entry, k, nodes.size() - 1);
  std::vector<uint32_t> in = memories_of(f.inputs), out;
  std::set<uint32_t> taken;
  for (uint32_t v : f.outputs) out.push_back(pass_output(v, f, taken, name));
  bool views = std::ranges::any_of(f.inputs, [&](uint32_t v) { return views_.contains(v); });
  if (!views)
    add_work(cache_.pass(p_, f), name, k, in, out);
  else
    add_work(rendered(traits_, codegen::elementwise(traits_, f.code, f.dims, operands(f), f.types(p_), f.exact)), name,
             k, in, out);
}

std::vector<codegen::Operand> Planner::operands(const Fusion& f) const {
  std::vector<codegen::Operand> list = operands_of(p_, f);
  for (size_t i = 0; i < list.size(); ++i)
    if (auto at = views_.find(f.inputs[i]); at != views_.end())
      list[i].strides = at->second.strides, list[i].offset = at->second.offset;
  return list;
}

bool Planner::casts_state(uint32_t k) {
  const Node& n = p_.nodes[k];
  if (n.op != "cast" || batch_end_[k] != k + 1 || p_.values[n.inputs[0]].role != TUTTI_STATE || !result_shape(n))
    return false;
  uint32_t v = n.results[0];
  bool kept = remaining_[v] > 1 || num_elements(p_.type(v).shape) <= large;
  auto passes = [&](uint32_t reader) {
    const Node& r = p_.nodes[reader];
    return r.elementwise() && result_shape(r) && *result_shape(r) == p_.type(v).shape;
  };
  return kept && home_[v] == TUTTI_NONE && std::ranges::none_of(readers_[v], passes);
}

std::vector<std::pair<uint32_t, Fusion>> Planner::horizontal_group(uint32_t k) {
  std::vector<std::pair<uint32_t, Fusion>> list;
  std::set<uint32_t> read;
  size_t written = 0;
  const Node& first = p_.nodes[k];
  bool casts = casts_state(k);
  for (uint32_t j = k, end = casts ? static_cast<uint32_t>(p_.nodes.size()) : batch_end_[k]; j < end; ++j) {
    const Node& n = p_.nodes[j];
    if ((j > k && done_[j]) || !n.elementwise() || (casts && j > k && !casts_state(j))) continue;
    if (n.op != first.op || n.flags != first.flags || n.expr.size() != first.expr.size()) continue;
    Fusion f = fused(std::array{j});
    if (f.outputs.empty() || num_elements(f.dims) == 0 || (!list.empty() && !same_code(f, list[0].second, p_)))
      continue;
    if (!fuses(j)) continue;  // last condition, because it plans the kernel
    read.insert(f.inputs.begin(), f.inputs.end());
    written += f.outputs.size();
    if (read.size() + written > traits_.max_arguments) break;
    list.emplace_back(j, std::move(f));
  }
  return list;
}

bool Planner::same_chains(const std::vector<uint32_t>& nodes, const Fusion& f, const char* entry) {
  auto count = static_cast<uint32_t>(nodes.size());
  if (traits_.cpu_like || count < 2 || nodes.back() != nodes[0] + count - 1 || num_elements(f.dims) == 0) return false;
  std::vector<std::pair<uint32_t, Fusion>> list = {{nodes[0], f}};
  std::set<uint32_t> read(f.inputs.begin(), f.inputs.end());
  size_t written = f.outputs.size();
  const uint32_t end = std::min(static_cast<uint32_t>(p_.nodes.size()), nodes[0] + look_ahead);
  for (uint32_t first = nodes[0] + count; first + count <= end; ++first) {
    if (!alike(nodes[0], first, count)) continue;
    std::vector<uint32_t> others(count);
    std::iota(others.begin(), others.end(), first);
    for (uint32_t j : others) finish(j);
    Fusion other = fused(others);
    // A state that one of them updates in place is read by no node between.
    auto in_place = [&](uint32_t v) { return home_[v] == TUTTI_NONE || is_dead(home_[v]); };
    std::set<uint32_t> all = read;
    all.insert(other.inputs.begin(), other.inputs.end());
    const size_t arguments = all.size() + written + other.outputs.size();
    if (!same_code(f, other, p_) || num_elements(other.dims) == 0 || arguments > traits_.max_arguments ||
        !std::ranges::all_of(other.outputs, in_place)) {
      for (uint32_t j : others) undo(j);
      continue;
    }
    read = std::move(all);
    written += other.outputs.size();
    list.emplace_back(first, std::move(other));
    first += count - 1;
  }
  if (list.size() < 2) return false;
  const size_t taken = count * list.size() - 1;
  add_small(list);
  launch_batch(list, describe(entry, nodes[0], taken));
  return true;
}

bool Planner::alike(uint32_t a, uint32_t b, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const Node &m = p_.nodes[a + i], &n = p_.nodes[b + i];
    bool same = n.op == m.op && n.flags == m.flags && n.expr.size() == m.expr.size() && n.elementwise();
    if (!same || done_[b + i] || batch_end_[b + i] != b + i + 1 || !fuses(b + i)) return false;
    auto there = [&](uint32_t v) {
      auto makes = [&](uint32_t j) { return std::ranges::count(p_.nodes[b + j].results, v) > 0; };
      for (uint32_t j = 0; j < i; ++j)
        if (makes(j)) return true;
      return !held_[v].empty() && !views_.contains(v);
    };
    const Shape *shape = result_shape(n), *first = result_shape(p_.nodes[b]);
    if (!shape || *shape != *first || !std::ranges::all_of(n.inputs, there)) return false;
  }
  return true;
}

bool Planner::batch(uint32_t k, const char* entry) {
  // lavapipe executes both sides of branches, so every group would compute all tensors. PoCL vectorizes branches badly,
  // and makes one launch of small ones anyway (serial.cpp).
  if (traits_.cpu_like) return false;
  std::vector<std::pair<uint32_t, Fusion>> list = horizontal_group(k);
  if (list.empty() || list[0].first != k) return false;
  if (list.size() < 2) return false;
  for (auto& [j, f] : list)
    if (j != k) finish(j);
  add_small(list);
  launch_batch(list, describe(entry, k, list.size() - 1));
  return true;
}

void Planner::add_small(std::vector<std::pair<uint32_t, Fusion>>& list) {
  if (traits_.cpu_like) return;
  std::set<uint32_t> read, homes;  // values, memories
  size_t written = 0;
  auto homes_of = [&](const Fusion& f) {
    std::set<uint32_t> all;
    for (uint32_t v : f.outputs)
      if (home_[v] != TUTTI_NONE) all.insert(home_[v]);
    return all;
  };
  auto reads = [&](const Fusion& f, const std::set<uint32_t>& memories) {
    return std::ranges::any_of(f.inputs, [&](uint32_t v) { return memories.contains(memory_of(v)); });
  };
  auto enter = [&](const Fusion& f) {
    read.insert(f.inputs.begin(), f.inputs.end());
    written += f.outputs.size();
    homes.merge(homes_of(f));
  };
  for (const auto& [k, f] : list) enter(f);
  const uint32_t first = list[0].first;
  const auto end = std::min<uint32_t>(static_cast<uint32_t>(p_.nodes.size()), first + look_ahead);
  for (uint32_t j = first + 1; j < end; ++j) {
    if (!runs_small(j)) continue;
    finish(j);
    std::vector<uint32_t> nodes = chain(j, traits_.max_arguments, false);
    Fusion f = fused(nodes);
    // A state that one of them updates in place is read by no other, neither here nor later.
    const std::set<uint32_t> own = homes_of(f);
    bool fits = f.exact == list[0].second.exact && !f.outputs.empty() && !reads(f, homes) && !shares_later(f);
    fits = fits && std::ranges::all_of(own, [&](uint32_t m) { return is_dead(m); }) &&
           std::ranges::none_of(list, [&](const auto& other) { return reads(other.second, own); });
    std::set<uint32_t> all = read;
    all.insert(f.inputs.begin(), f.inputs.end());
    if (!fits || all.size() + written + f.outputs.size() > traits_.max_arguments) {
      for (uint32_t n : nodes) undo(n);
      continue;
    }
    enter(f);
    list.emplace_back(j, std::move(f));
  }
}

bool Planner::shares_later(const Fusion& f) const {
  auto waits = [&](uint32_t v) {  // for what no pass computes
    const uint32_t k = exists(v) ? TUTTI_NONE : maker_[v];
    return k != TUTTI_NONE && !done_[k] && !p_.nodes[k].elementwise() && !reduce_op(p_.nodes[k].op) &&
           p_.nodes[k].op != "reshape" && !std::ranges::count(f.outputs, v);
  };
  auto shares = [&](uint32_t k) {
    const Node& n = p_.nodes[k];
    const Shape* shape = result_shape(n);
    if (done_[k] || !shape) return false;
    if (reduce_op(n.op)) return !summed_by_product(n);
    return n.elementwise() && num_elements(*shape) == num_elements(f.dims) && std::ranges::none_of(n.inputs, waits);
  };
  return std::ranges::any_of(f.outputs, [&](uint32_t v) { return std::ranges::any_of(readers_[v], shares); });
}

bool Planner::runs_small(uint32_t k) {
  const Node& n = p_.nodes[k];
  if (done_[k] || !n.elementwise()) return false;
  const Shape* shape = result_shape(n);
  if (!shape || num_elements(*shape) == 0 || num_elements(*shape) > large) return false;
  return std::ranges::all_of(n.inputs, [&](uint32_t v) { return !held_[v].empty(); }) && fuses(k);
}

void Planner::launch_batch(const std::vector<std::pair<uint32_t, Fusion>>& list, const std::string& name) {
  uint32_t k = list[0].first;
  if (trace_) trace_(fmt::format("nodes {}..{} → one launch over {} tensors", k, list.back().first, list.size()));
  std::vector<uint32_t> values, out;
  std::map<uint32_t, std::set<uint32_t>> readers;  // memory → nodes
  for (auto& [j, f] : list)
    for (uint32_t v : f.inputs) {
      readers[memory_of(v)].insert(j);
      if (std::find(values.begin(), values.end(), v) == values.end()) values.push_back(v);
    }
  std::vector<uint32_t> in = memories_of(values);
  std::vector<codegen::BatchItem> items;
  std::set<uint32_t> taken;
  for (auto& [j, f] : list) {
    codegen::BatchItem item{f.dims, operands(f), {}, {}};
    if (!same_code(f, list[0].second, p_)) item.code = f.code, item.out = f.types(p_);
    for (uint32_t v : f.inputs)
      item.from.push_back(static_cast<int>(std::find(values.begin(), values.end(), v) - values.begin()));
    std::set<uint32_t> kept = taken;  // inputs of other nodes in the launch must not be overwritten
    for (auto& [memory, nodes] : readers)
      if (nodes.size() > 1 || !nodes.contains(j)) kept.insert(memory);
    for (uint32_t v : f.outputs) {
      item.to.push_back(static_cast<int>(in.size() + out.size()));
      out.push_back(pass_output(v, f, kept, name));
      taken.insert(out.back());
    }
    items.push_back(std::move(item));
  }
  const Fusion& first = list[0].second;
  add_work(rendered(traits_, codegen::elementwise_batch(traits_, first.code, items, first.types(p_), first.exact)),
           name, k, in, out);
}

uint32_t Planner::pass_output(uint32_t v, const Fusion& f, std::set<uint32_t>& taken, const std::string& name) {
  std::vector<PassOperand> operands;
  for (uint32_t i : f.inputs) {
    const TensorType& t = p_.type(i);
    bool dense = num_elements(t.shape) == num_elements(f.dims) && !views_.contains(i);
    operands.push_back({memory_of(i), size_of(t.dtype), dense});
  }
  uint32_t memory = overwritten(v, operands, taken);
  if (memory == TUTTI_NONE) return place_result(v, name);
  hold(v, memory);
  return memory;
}

}  // namespace tutti::sdk
