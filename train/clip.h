// Gradient clipping, as nodes of the step.
#pragma once
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// Every element into [-limit, limit].
TUTTI_API void clip_by_value(Values& gradients, double limit);
/// All gradients times min(1, limit / (norm + 1e-6)), norm the 2-norm of all of them together (PyTorch's
/// clip_grad_norm_). Returns the norm before.
TUTTI_API Value clip_by_global_norm(Values& gradients, double limit);

}  // namespace tutti
