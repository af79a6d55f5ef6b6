#include "graph/passes/compile.h"

#include <fmt/format.h>

#include "core/base/log.h"
#include "graph/passes/cse.h"
#include "graph/passes/dce.h"
#include "graph/passes/group.h"
#include "graph/passes/simplify.h"
#include "graph/print.h"
#include "graph/verify.h"

namespace tutti {

Lowered compile_for_device(const Graph& g, Legalizer& legalizer) {
  verify(g);
  Graph legal = legalizer.run(dce(cse(simplify(g))));
  Grouped grouped = group(dce(cse(simplify(legal))));
  // Simplifying may leave signatures that the device has not seen (another reshape): it is asked again.
  if (Graph again = legalizer.run(grouped.graph); again.nodes().size() != grouped.graph.nodes().size())
    grouped = group(dce(again));
  if (log::traced("graph")) log::write(log::Level::info, "graph", fmt::format("\n{}", print(grouped.graph)));
  return Lowered(grouped.graph, std::move(grouped.groups));
}

}  // namespace tutti
