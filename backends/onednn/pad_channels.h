// Pads f16 and bf16 convolutions that sum over an odd number of channels with a channel of zeros.
#pragma once
#include <array>

#include "backends/onednn/primitive.h"

namespace tutti::onednn {

/// A kernel that pads the node's first two inputs with zeros along one axis each, to the types `padded`, and runs
/// `conv` on these copies in the workspace. Results and bias are those of `conv`.
KernelPtr make_channel_padded(const NodeView& c, const std::array<TensorType, 2>& padded, KernelPtr conv);

}  // namespace tutti::onednn
