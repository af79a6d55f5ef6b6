// Gradient clipping as graph nodes of the training step.
#pragma once
#include <functional>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// Of values per gradient, null where its gradient is null: the values of all gradients, from the ranks that have them.
using OfAllRanks = std::function<Values(const Values& values)>;

/// The 2-norm over all gradients; null if there are none.
TUTTI_API Value global_norm(const Values& gradients, const OfAllRanks& all = {});
/// Clamps every element to [-limit, limit].
TUTTI_API void clip_by_value(Values& gradients, double limit);
/// Multiplies all gradients by min(1, limit / (norm + 1e-6)), where norm is their global_norm (PyTorch's
/// clip_grad_norm_).
TUTTI_API void clip_by_global_norm(Values& gradients, double limit, const OfAllRanks& all = {});

}  // namespace tutti
