// The way from a graph to what a device runs: simplify → cse → dce → legalize → simplify → cse → dce → group → lower.
#pragma once
#include "core/base/export.h"
#include "graph/lower/legalize.h"
#include "graph/lower/lower.h"

namespace tutti {

/// A graph after all device-independent and device-dependent passes, ready to be lowered. TUTTI_TRACE=graph prints it.
TUTTI_API Lowered compile_for_device(const Graph& g, Legalizer& legalizer);

/// Its two halves. What the first gives may still hold nodes that the device declines and that have no decomposition;
/// the second throws Error(declined) listing them.
TUTTI_API Graph expand_for_device(const Graph& g, Legalizer& legalizer);
TUTTI_API Lowered lower_for_device(const Graph& expanded, Legalizer& legalizer);

}  // namespace tutti
