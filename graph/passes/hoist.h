// A pass for gradient accumulation: large updates run as early as possible.
#pragma once
#include "graph/op.h"

namespace tutti {

/// Moves every elementwise node of Phase::update whose result has at least `elements` elements to directly behind the
/// last node that it depends on. The results are the same. The nodes' inputs are freed earlier, and states that only
/// these nodes set are final earlier.
Graph hoist_updates(const Graph& g, int64_t elements);

}  // namespace tutti
