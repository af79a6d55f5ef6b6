#include "graph/passes/hoist.h"

#include <algorithm>
#include <numeric>

#include "graph/passes/rewrite.h"

namespace tutti {

Graph hoist_updates(const Graph& g, int64_t elements) {
  constexpr size_t outside = -1;                             // a feed, a constant or the start value of a state
  std::vector<size_t> producer(g.values().size(), outside);  // per value: the node
  std::vector<size_t> place(g.nodes().size());               // per node: the node that it stands behind, or itself
  for (size_t k = 0; k < g.nodes().size(); ++k) {
    const Node& n = g.nodes()[k];
    place[k] = k;
    for (ValueId v : n.results) producer[v] = k;
    if (n.phase != Phase::update || !n.op->elementwise() || num_elements(g.info(n.results[0]).type.shape) < elements)
      continue;
    size_t last = outside;
    for (ValueId v : n.inputs)
      if (size_t p = producer[v]; p != outside) last = last == outside ? place[p] : std::max(last, place[p]);
    if (last != outside) place[k] = last;
  }
  std::vector<size_t> order(place.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t k) { return place[k]; });
  Rewriter r(g);
  for (size_t k : order) r.copy(g.nodes()[k]);
  return r.finish();
}

}  // namespace tutti
