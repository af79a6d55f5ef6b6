// Float64 definitions of ops that are not the engine's, for plugins that compute by definitions (core/abi/tutti_ops.h).
#pragma once
#include "graph/op.h"

namespace tutti {

/// From now on plugins may ask for the op's reference; it stays valid until the process ends. Throws Error(invalid) if
/// another op has the name.
void lend_definition(const OpDef& op);

}  // namespace tutti
