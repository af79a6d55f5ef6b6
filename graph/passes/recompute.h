// Activation recompute (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016): a block's activations are
// computed again right before the backward pass reads them, instead of being kept from the forward pass.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tutti {

/// The numbered modules of a training step ("h.0" … "h.11"; if nested, the outermost) that keep activations which
/// recompute() could free, in the order of the forward pass.
TUTTI_API std::vector<std::string> blocks(const Graph& g);

/// The same step, except that the backward pass reads copies (of phase recompute) of the activations of these blocks,
/// computed where they are first needed; a block's outputs are kept as before. Throws Error(invalid) for a name that is
/// not one of the graph's blocks.
TUTTI_API Graph recompute(const Graph& g, const std::vector<std::string>& blocks);

}  // namespace tutti
