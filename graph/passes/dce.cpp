#include "graph/passes/dce.h"

#include "graph/passes/rewrite.h"

namespace tutti {

Graph dce(const Graph& g) {
  Rewriter r(g);
  std::vector<bool> live = live_nodes(g);
  for (size_t k = 0; k < g.nodes().size(); ++k)
    if (live[k]) r.copy(g.nodes()[k]);
  return r.finish();
}

}  // namespace tutti
