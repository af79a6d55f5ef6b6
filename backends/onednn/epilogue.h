// Which elementwise nodes behind a product or convolution become part of it.
#pragma once
#include "backends/onednn/kernel.h"

namespace tutti::onednn {

/// A structured node with the elementwise nodes that its primitive does on the way out.
struct Tail {
  Epilogue epilogue;
  uint32_t nodes = 0;  ///< how many nodes behind it are part of it
};

/// Matches `+ bias` and `max(…, 0)` among the nodes behind `node` up to `end` (exclusive). What lies between must have no
/// other reader. `readers`: per value, how many nodes and states read it.
Tail match_tail(const sdk::Program& program, uint32_t node, uint32_t end, const std::vector<uint32_t>& readers);

/// The node that sums the cotangent of convolution gradient `node` (a conv2d_dw) over all axes but the channels, or
/// TUTTI_NONE. Both may run where the first of the two stands.
uint32_t match_gradient_sum(const sdk::Program& program, uint32_t node);

}  // namespace tutti::onednn
