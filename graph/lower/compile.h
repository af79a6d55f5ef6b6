// The pipeline from a graph to a device program: simplify → cse → dce → legalize → simplify → cse → dce → channels_last
// (if the device prefers it; then legalize → simplify → cse → dce again) → group → lower.
#pragma once
#include "core/base/export.h"
#include "graph/lower/legalize.h"
#include "graph/lower/lower.h"

namespace tutti {

/// Runs all device-independent and device-dependent passes and lowers the graph. TUTTI_TRACE=graph prints it.
TUTTI_API Lowered compile_for_device(const Graph& g, Legalizer& legalizer);

/// The two halves of compile_for_device. The result of the first may contain nodes that the device declines and that
/// have no decomposition; the second throws Error(declined) listing them.
TUTTI_API Graph expand_for_device(const Graph& g, Legalizer& legalizer);
TUTTI_API Lowered lower_for_device(const Graph& expanded, Legalizer& legalizer);

}  // namespace tutti
