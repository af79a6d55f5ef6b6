// Reverse-mode differentiation: graph in, graph out.
#pragma once
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// The gradient of a value that no result depends on: a null Value, or zeros.
enum class Unreached { null, zeros };

/// Appends to the graph of `results` the nodes that compute, for each value of `wrt`, the sum over k of the
/// vector-Jacobian product of results[k] with seeds[k] (same type as results[k]). Gradients of a value that is used
/// several times are summed; no node is added for values that do not depend on any wrt value. `unreached` selects the
/// gradient of wrt values that no result depends on. Gradients have the type of their wrt value. Throws Error if an op
/// on the path has no gradient. Results may themselves be gradients (second derivatives). Nodes before index `first`
/// are not differentiated: their results count as constants.
TUTTI_API Values gradients(const Values& results, const Values& seeds, const Values& wrt,
                           Unreached unreached = Unreached::null, size_t first = 0);

/// The gradients of a scalar loss (seed 1). Throws Error if `loss` is not a scalar of a float dtype.
TUTTI_API Values gradients(Value loss, const Values& wrt, Unreached unreached = Unreached::null);

}  // namespace tutti
