// Elementwise nodes: chains become one pass, twins of a batch group one launch.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sdk/rendered_planner.h"

namespace tutti::sdk {

void Planner::elementwise(uint32_t k) {
  std::vector<uint32_t> nodes = {k};
  const Shape& shape = *result_shape(p_.nodes[k]);
  if (batch(k)) return;
  uint32_t end = chain_end_[k];
  for (uint32_t j = k + 1; j < end && !done_[j]; ++j) {
    const Node& n = p_.nodes[j];
    const Shape* other = result_shape(n);
    if (!n.elementwise() || !other || *other != shape || n.flags != p_.nodes[k].flags) break;
    RenderChoice choice = choose_rendered({p_, j, traits_});
    if (!choice.entry || std::string_view(choice.entry->name) != elementwise_entry) break;
    nodes.push_back(j);
    finish(j);
    if (arguments(nodes) <= traits_.max_arguments) continue;
    nodes.pop_back();
    done_[j] = false;
    for (uint32_t v : n.inputs) ++remaining_[v];
    break;
  }
  Fusion f = fuse(p_, nodes, [&](uint32_t v) { return remaining_[v] > 0; });
  if (trace_ && nodes.size() > 1) trace_(fmt::format("nodes {}..{} → one pass", k, nodes.back()));
  if (f.outputs.empty() || num_elements(f.dims) == 0) {
    for (uint32_t v : f.outputs) result_memory(v, "nothing");
    return;
  }
  std::string name = describe(elementwise_entry, k, nodes.size() - 1);
  std::vector<uint32_t> in, out;
  for (uint32_t v : f.inputs) in.push_back(memory_[v]);
  std::set<uint32_t> taken;
  for (uint32_t v : f.outputs) out.push_back(pass_output(v, f, in, taken, name));
  add_work(f.render(p_, traits_), name, k, in, out);
}

const Shape* Planner::result_shape(const Node& n) const {
  for (uint32_t v : n.results)
    if (v != TUTTI_NONE) return &p_.type(v).shape;
  return nullptr;
}

size_t Planner::arguments(const std::vector<uint32_t>& nodes) const {
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

std::vector<std::pair<uint32_t, Fusion>> Planner::twins(uint32_t k) const {
  std::vector<std::pair<uint32_t, Fusion>> list;
  std::set<uint32_t> read;
  size_t written = 0;
  const Node& first = p_.nodes[k];
  for (uint32_t j = k, end = batch_end_[k]; j < end; ++j) {
    const Node& n = p_.nodes[j];
    if ((j > k && done_[j]) || !n.elementwise()) continue;
    if (n.op != first.op || n.flags != first.flags || n.expr.size() != first.expr.size()) continue;
    Fusion f = fuse(p_, {j}, [&](uint32_t v) { return remaining_[v] > 0; });
    if (f.outputs.empty() || num_elements(f.dims) == 0 || (!list.empty() && !f.same_as(list[0].second, p_))) continue;
    RenderChoice choice = choose_rendered({p_, j, traits_});  // last: it renders the kernel
    if (!choice.entry || std::string_view(choice.entry->name) != elementwise_entry) continue;
    read.insert(f.inputs.begin(), f.inputs.end());
    written += f.outputs.size();
    if (read.size() + written > traits_.max_arguments) break;
    list.emplace_back(j, std::move(f));
  }
  return list;
}

bool Planner::batch(uint32_t k) {
  // lavapipe runs both sides of a branch, so every group would compute every tensor's share.
  if (traits_.cpu_like && traits_.language == Language::glsl) return false;
  std::vector<std::pair<uint32_t, Fusion>> list = twins(k);
  if (list.size() < 2 || list[0].first != k) return false;
  for (auto& [j, f] : list)
    if (j != k) finish(j);
  if (trace_) trace_(fmt::format("nodes {}..{} → one launch over {} tensors", k, list.back().first, list.size()));
  std::string name = describe(elementwise_entry, k, list.size() - 1);
  std::vector<uint32_t> values, in, out;
  std::map<uint32_t, std::set<uint32_t>> readers;  // memory → nodes
  for (auto& [j, f] : list)
    for (uint32_t v : f.inputs) {
      readers[memory_[v]].insert(j);
      if (std::find(values.begin(), values.end(), v) == values.end()) values.push_back(v), in.push_back(memory_[v]);
    }
  std::vector<dialect::Piece> pieces;
  std::set<uint32_t> taken;
  for (auto& [j, f] : list) {
    dialect::Piece piece{f.dims, f.operands(p_), {}, {}};
    std::vector<uint32_t> own;
    for (uint32_t v : f.inputs) {
      piece.from.push_back(static_cast<int>(std::find(values.begin(), values.end(), v) - values.begin()));
      own.push_back(memory_[v]);
    }
    std::set<uint32_t> kept = taken;  // what other nodes of the launch read may not be written over
    for (auto& [memory, nodes] : readers)
      if (nodes.size() > 1 || !nodes.contains(j)) kept.insert(memory);
    for (uint32_t v : f.outputs) {
      piece.to.push_back(static_cast<int>(in.size() + out.size()));
      out.push_back(pass_output(v, f, own, kept, name));
      taken.insert(out.back());
    }
    pieces.push_back(std::move(piece));
  }
  const Fusion& first = list[0].second;
  add_work(dialect::elementwise_batch(traits_, first.code, pieces, first.types(p_), first.exact), name, k, in, out);
  return true;
}

uint32_t Planner::pass_output(uint32_t v, const Fusion& f, const std::vector<uint32_t>& in, std::set<uint32_t>& taken,
                              const std::string& name) {
  size_t element = size_of(p_.type(v).dtype);
  int64_t count = num_elements(f.dims);
  auto overwritable = [&](uint32_t memory) {
    for (size_t i = 0; i < in.size(); ++i) {
      const TensorType& t = p_.type(f.inputs[i]);
      if (in[i] == memory && (size_of(t.dtype) != element || num_elements(t.shape) != count)) return false;
    }
    return true;
  };
  if (uint32_t home = home_[v]; home != TUTTI_NONE) {
    if (overwritable(home) && taken.insert(home).second) return hold(v, home);
    home_[v] = TUTTI_NONE;
  }
  for (size_t i = 0; i < in.size(); ++i) {
    uint32_t m = in[i];
    if (plan_.memories[m].place != Place::arena || taken.contains(m) ||
        num_elements(p_.type(f.inputs[i]).shape) != count)
      continue;
    if (!overwritable(m) || !is_dead(m)) continue;
    taken.insert(m);
    return hold(v, m);
  }
  return result_memory(v, name);
}

}  // namespace tutti::sdk
