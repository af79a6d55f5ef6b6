// The way from a graph to what a device runs: simplify → cse → legalize → simplify → dce → group → lower.
#pragma once
#include "graph/lower/legalize.h"
#include "graph/lower/lower.h"

namespace tutti {

/// A graph after all device-independent and device-dependent passes, ready to be lowered. TUTTI_TRACE=graph prints it.
Lowered compile_for_device(const Graph& g, Legalizer& legalizer);

/// Its two halves. What the first gives may still hold nodes that the device declines and that have no decomposition;
/// the second throws Error(declined) listing them.
Graph expand_for_device(const Graph& g, Legalizer& legalizer);
Lowered lower_for_device(const Graph& expanded, Legalizer& legalizer);

}  // namespace tutti
