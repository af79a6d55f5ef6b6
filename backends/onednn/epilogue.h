// Which elementwise nodes behind a product or convolution become part of it.
#pragma once
#include "backends/onednn/kernel.h"

namespace tutti::onednn {

/// A structured node with the elementwise nodes that its primitive does on the way out.
struct Tail {
  Epilogue epilogue;
  std::vector<uint32_t> nodes;  ///< what becomes part of it, in order
};

/// Per value, the nodes that read it; `states` counts readers that are no nodes.
struct Readers {
  explicit Readers(const sdk::Program& program);
  std::vector<std::vector<uint32_t>> nodes;
  std::vector<uint32_t> states;
  /// The one node that reads v, or NONE where several (or a state) do.
  uint32_t only(uint32_t v) const { return nodes[v].size() == 1 && states[v] == 0 ? nodes[v][0] : TUTTI_NONE; }
};

/// Follows the only reader of the result of `node`: `+ bias`, wherever in the program it stands. (`max(…, 0)` stays a
/// pass of its own: oneDNN's relu turns NaN into 0, which would hide a diverging run.) `exists`: whether a value can be
/// had before `node` runs.
Tail match_tail(const sdk::Program& program, uint32_t node, const Readers& readers,
                const std::function<bool(uint32_t)>& exists);

/// The node that sums the cotangent of convolution gradient `node` (a conv2d_dw) over all axes but the channels, or
/// TUTTI_NONE.
uint32_t match_gradient_sum(const sdk::Program& program, uint32_t node, const Readers& readers);

}  // namespace tutti::onednn
