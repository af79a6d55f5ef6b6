// Activation recompute (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016): what the backward pass
// reads of a block is computed again right before, instead of being held since the forward pass.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tutti {

/// The modules of a training step that are numbered among their like ("h.0" … "h.11"; the outermost where they nest)
/// and hold something for the backward pass that recompute() can spare, in the order of the forward pass.
TUTTI_API std::vector<std::string> blocks(const Graph& g);

/// The same step, but the backward pass reads copies (of phase recompute) of what these blocks computed, made where it
/// first needs them; what a block hands to others is held as before. Throws Error(invalid) for a name that is none of
/// the graph's blocks.
TUTTI_API Graph recompute(const Graph& g, const std::vector<std::string>& blocks);

}  // namespace tutti
