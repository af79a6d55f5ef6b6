#include "sdk/plan/liveness.h"

#include <algorithm>

namespace tutti::sdk {

std::vector<uint32_t> last_readers(const Program& p) {
  std::vector<uint32_t> last(p.values.size(), TUTTI_NONE);
  for (uint32_t k = 0; k < p.nodes.size(); ++k)
    for (uint32_t v : p.nodes[k].inputs) last[v] = k;
  for (const State& s : p.states) last[s.after] = static_cast<uint32_t>(p.nodes.size());
  return last;
}

std::vector<bool> in_place_states(const Program& p) {
  std::vector<uint32_t> last = last_readers(p), producer(p.values.size(), TUTTI_NONE);
  for (uint32_t k = 0; k < p.nodes.size(); ++k)
    for (uint32_t v : p.nodes[k].results)
      if (v != TUTTI_NONE) producer[v] = k;
  std::vector<bool> out, taken(p.values.size());
  for (const State& s : p.states) {
    uint32_t node = producer[s.after];
    bool safe = node != TUTTI_NONE && !taken[s.after];
    if (safe && s.before != TUTTI_NONE && last[s.before] != TUTTI_NONE)
      safe = last[s.before] < node || (last[s.before] == node && p.nodes[node].elementwise());
    if (safe) taken[s.after] = true;
    out.push_back(safe);
  }
  return out;
}

std::vector<uint32_t> reshapes(const Program& p) {
  std::vector<uint32_t> out(p.values.size(), TUTTI_NONE);
  for (uint32_t k = 0; k < p.nodes.size(); ++k) {
    const Node& n = p.nodes[k];
    if (n.op == "reshape" && !n.inputs.empty() && n.results.size() == 1 && n.results[0] != TUTTI_NONE)
      out[n.results[0]] = k;
  }
  return out;
}

std::vector<uint32_t> makers(const Program& p) {
  std::vector<uint32_t> out(p.values.size(), TUTTI_NONE);
  for (uint32_t k = 0; k < p.nodes.size(); ++k)
    for (uint32_t v : p.nodes[k].results)
      if (v != TUTTI_NONE) out[v] = k;
  return out;
}

std::vector<bool> home_states(const Program& p) {
  std::vector<uint32_t> last = last_readers(p), reshape = reshapes(p), maker = makers(p);
  std::vector<uint32_t> root(p.values.size());      // the value that it is a reshape of, or itself
  std::vector<int64_t> alias(p.values.size(), -1);  // the last node that reads a reshape of the value
  for (uint32_t v = 0; v < root.size(); ++v) root[v] = v;
  for (const Node& n : p.nodes)
    for (uint32_t v : n.results) {
      if (v == TUTTI_NONE || reshape[v] == TUTTI_NONE) continue;
      root[v] = root[n.inputs[0]];
      if (last[v] != TUTTI_NONE) alias[root[v]] = std::max<int64_t>(alias[root[v]], last[v]);
    }
  std::vector<bool> out = in_place_states(p);
  for (size_t i = 0; i < out.size(); ++i) {
    const State& s = p.states[i];
    out[i] = out[i] && root[s.after] == s.after && (s.before == TUTTI_NONE || alias[s.before] < maker[s.after]);
  }
  return out;
}

std::vector<uint32_t> group_ends(const Program& p, uint32_t kind) {
  std::vector<uint32_t> out(p.nodes.size());
  for (uint32_t k = 0; k < out.size(); ++k) out[k] = k + 1;
  for (const TuttiGroup& g : p.groups)
    if (g.kind == kind) std::fill_n(out.begin() + g.first, g.count, g.first + g.count);
  return out;
}

std::vector<StateCopy> state_copies(const Program& p, const std::vector<uint32_t>& states,
                                    const std::function<uint32_t(uint32_t value)>& memory) {
  std::vector<StateCopy> copies;
  for (size_t i = 0; i < p.states.size(); ++i) {
    const State& s = p.states[i];
    if (s.after == s.before || num_elements(p.type(s.after).shape) == 0) continue;
    if (uint32_t from = memory(s.after); from != states[i]) copies.push_back({i, from, states[i]});
  }
  for (StateCopy& c : copies)
    c.saved = std::any_of(copies.begin(), copies.end(), [&](const StateCopy& other) { return other.to == c.from; });
  return copies;
}

}  // namespace tutti::sdk
