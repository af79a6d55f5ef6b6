// The way from a graph to what a device runs: simplify → cse → legalize → simplify → dce → group → lower.
#pragma once
#include "graph/passes/legalize.h"
#include "graph/passes/lower.h"

namespace tutti {

/// A graph after all device-independent and device-dependent passes, ready to be lowered. TUTTI_TRACE=graph prints it.
Lowered compile_for_device(const Graph& g, Legalizer& legalizer);

}  // namespace tutti
