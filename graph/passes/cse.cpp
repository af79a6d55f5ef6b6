#include "graph/passes/cse.h"

#include <unordered_map>

#include "core/base/key_bytes.h"
#include "graph/passes/rewrite.h"

namespace tutti {

Graph cse(const Graph& g) {
  Rewriter r(g);
  std::unordered_map<std::string, Values> seen;
  for (ValueId id = 0; id < g.values().size(); ++id) {
    const ValueInfo& v = g.info(id);
    if (v.role != Role::constant) continue;
    auto [it, fresh] = seen.try_emplace(KeyBytes().add(v.type).add_all(v.data).take());
    if (fresh) it->second = {r[id]};
    r.set(id, it->second[0]);
  }
  for (const Node& n : g.nodes()) {
    KeyBytes key;
    key.add(n.op).add(n.attrs).add(n.phase == Phase::recompute);  // a recomputed node must not become the stored one
    for (Value v : r.map(n.inputs)) key.add(v.id());
    auto [it, fresh] = seen.try_emplace(key.take());
    if (fresh) it->second = r.copy(n);
    for (size_t k = 0; k < n.results.size(); ++k) r.set(n.results[k], it->second[k]);
  }
  return r.finish();
}

}  // namespace tutti
