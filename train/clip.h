// Gradient clipping, as nodes of the step.
#pragma once
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// The 2-norm of all gradients together; null where there is none.
TUTTI_API Value global_norm(const Values& gradients);
/// Every element into [-limit, limit].
TUTTI_API void clip_by_value(Values& gradients, double limit);
/// All gradients times min(1, limit / (norm + 1e-6)), norm their global_norm (PyTorch's clip_grad_norm_).
TUTTI_API void clip_by_global_norm(Values& gradients, double limit);

}  // namespace tutti
