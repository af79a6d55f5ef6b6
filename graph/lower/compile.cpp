#include "graph/lower/compile.h"

#include <fmt/format.h>

#include "core/base/log.h"
#include "graph/lower/group.h"
#include "graph/passes/cse.h"
#include "graph/passes/dce.h"
#include "graph/passes/simplify.h"
#include "graph/print.h"
#include "graph/verify.h"

namespace tutti {

Graph expand_for_device(const Graph& g, Legalizer& legalizer) {
  verify(g);
  return dce(cse(simplify(legalizer.expand(dce(cse(simplify(g)))))));
}

Lowered lower_for_device(const Graph& expanded, Legalizer& legalizer) {
  Grouped grouped = group(expanded);
  // Simplification may produce signatures that the device has not been asked about (such as another reshape): asks
  // again.
  if (!legalizer.declined(grouped.graph).empty()) grouped = group(dce(legalizer.run(grouped.graph)));
  if (log::traced("graph")) log::write(log::Level::info, "graph", fmt::format("\n{}", print(grouped.graph)));
  return Lowered(grouped.graph, std::move(grouped.groups), legalizer.numerics());
}

Lowered compile_for_device(const Graph& g, Legalizer& legalizer) {
  return lower_for_device(expand_for_device(g, legalizer), legalizer);
}

}  // namespace tutti
