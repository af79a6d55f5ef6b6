// Reverse-mode differentiation: graph in, graph out.
#pragma once
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// The gradient to a value that no result depends on: a null Value, or zeros.
enum class Unreached { null, zeros };

/// Appends to the graph of `results` the nodes that compute, for each value of `wrt`, the sum over k of the vector-
/// Jacobian product of results[k] with seeds[k] (same type as results[k]). Contributions of a value that is used many
/// times are added; nothing is computed for what no wrt value reaches, whose gradient is what `unreached` says.
/// Gradients have the type of their wrt value. Throws Error for an op on the way that has no gradient. Results may
/// themselves be gradients (second derivatives). Nodes before number `first` are not gone through: what they compute
/// counts as given.
TUTTI_API Values gradients(const Values& results, const Values& seeds, const Values& wrt,
                           Unreached unreached = Unreached::null, size_t first = 0);

/// The gradients of a scalar loss (seed 1). Throws Error when `loss` is not a scalar of a float dtype.
TUTTI_API Values gradients(Value loss, const Values& wrt, Unreached unreached = Unreached::null);

}  // namespace tutti
