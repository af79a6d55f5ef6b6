#include "graph/lower/compile.h"

#include <fmt/format.h>

#include "core/base/log.h"
#include "graph/lower/group.h"
#include "graph/passes/channels_last.h"
#include "graph/passes/cse.h"
#include "graph/passes/dce.h"
#include "graph/passes/simplify.h"
#include "graph/print.h"
#include "graph/verify.h"

namespace tutti {

namespace {

Graph tidied(const Graph& g) { return dce(cse(simplify(g))); }

/// Whether the device has kernels for channels-last images of all convolutions: with some in another layout, there
/// would be transposes between them.
bool has_channels_last(const Graph& g, Legalizer& legalizer) {
  if (legalizer.numerics() == TUTTI_EXACT) return false;
  Graph question = channels_last_convolutions(g);
  return !question.nodes().empty() && legalizer.declined(question).empty();
}

/// The graph in the layout of images that the device prefers. Channels-last images must be worth their transposes:
/// those of nodes between convolutions that compute in one order of elements alone, as group norms.
Graph in_layout(Graph g, Legalizer& legalizer) {
  if (!has_channels_last(g, legalizer)) return g;
  Graph last = tidied(legalizer.expand(channels_last(g)));
  return transposed_bytes(last) - transposed_bytes(g) < convolution_bytes(g) ? std::move(last) : std::move(g);
}

}  // namespace

Graph expand_for_device(const Graph& g, Legalizer& legalizer) {
  verify(g);
  return in_layout(tidied(legalizer.expand(tidied(g))), legalizer);
}

Lowered lower_for_device(const Graph& expanded, Legalizer& legalizer) {
  Grouped grouped = group(expanded);
  // Simplification may produce signatures that the device has not been asked about (such as another reshape): asks
  // again.
  if (!legalizer.declined(grouped.graph).empty()) grouped = group(dce(legalizer.run(grouped.graph)));
  if (logging::traced("graph"))
    logging::write(logging::Level::info, "graph", fmt::format("\n{}", print(grouped.graph)));
  return Lowered(grouped.graph, std::move(grouped.groups), legalizer.numerics());
}

Lowered compile_for_device(const Graph& g, Legalizer& legalizer) {
  return lower_for_device(expand_for_device(g, legalizer), legalizer);
}

}  // namespace tutti
