#include "graph/passes/cse.h"

#include <fmt/format.h>

#include <unordered_map>

#include "graph/passes/rewrite.h"

namespace tutti {

Graph cse(const Graph& g) {
  Rewriter r(g);
  std::unordered_map<std::string, Values> seen;
  for (ValueId id = 0; id < g.values().size(); ++id) {
    const ValueInfo& v = g.info(id);
    if (v.role != Role::constant) continue;
    std::string key =
        to_string(v.type) + ":" + std::string(reinterpret_cast<const char*>(v.data.data()), v.data.size());
    auto [it, fresh] = seen.try_emplace(key);
    if (fresh) it->second = {r[id]};
    r.set(id, it->second[0]);
  }
  for (const Node& n : g.nodes()) {
    std::string key = n.op->name + n.attrs.to_string();
    if (n.phase == Phase::recompute) key += " again";  // or it would be the node that it is to spare
    for (Value v : r.map(n.inputs)) key += fmt::format(" {}", v.id());
    auto [it, fresh] = seen.try_emplace(key);
    if (fresh) it->second = r.copy(n);
    for (size_t k = 0; k < n.results.size(); ++k) r.set(n.results[k], it->second[k]);
  }
  return r.finish();
}

}  // namespace tutti
