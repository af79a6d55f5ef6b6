#include "graph/passes/rewrite.h"

#include <algorithm>

namespace tutti {

Rewriter::Rewriter(const Graph& from, std::set<std::string> without)
    : from_(from), without_(std::move(without)), map_(from.values().size()) {
  for (ValueId id = 0; id < map_.size(); ++id) {
    const ValueInfo& v = from.info(id);
    if (v.role == Role::feed) map_[id] = to_.feed(v.name, v.type);
    if (v.role == Role::state && !without_.contains(v.name))
      map_[id] = to_.state(v.name, v.type, from.find_state(v.name)->role);
  }
}

Value Rewriter::operator[](ValueId old) {
  const ValueInfo& v = from_.info(old);
  if (!map_[old] && v.role == Role::constant) map_[old] = to_.constant(v.type, v.data);
  return map_[old];
}

Values Rewriter::map(const std::vector<ValueId>& old) {
  Values out;
  for (ValueId id : old) out.push_back((*this)[id]);
  return out;
}

Values Rewriter::copy(const Node& n) {
  to_.set_origin(n);
  Values out = to_.add(*n.op, map(n.inputs), n.attrs);
  for (size_t k = 0; k < out.size(); ++k) map_[n.results[k]] = out[k];
  return out;
}

Graph Rewriter::finish() {
  for (const State& s : from_.states())
    if (s.after != s.before && !without_.contains(s.name)) to_.set_state(s.name, (*this)[s.after], s.role);
  to_.set_origin({});
  return std::move(to_);
}

std::vector<bool> live_nodes(const Graph& g) {
  std::vector<bool> value(g.values().size()), node(g.nodes().size());
  for (const State& s : g.states()) value[s.after] = true;
  for (size_t k = node.size(); k-- > 0;) {
    const Node& n = g.nodes()[k];
    node[k] = std::any_of(n.results.begin(), n.results.end(), [&](ValueId r) { return value[r]; });
    if (node[k])
      for (ValueId i : n.inputs) value[i] = true;
  }
  return node;
}

}  // namespace tutti
