// Convolutions that sum over an odd number of channels in f16 and bf16: with one more channel of zeros.
#pragma once
#include <array>

#include "backends/onednn/kernel.h"

namespace tutti::onednn {

/// A kernel that appends zeros to the first two inputs of the case along an axis each, up to the types `padded`, and
/// runs `conv` on these copies, which live in the workspace. Results, and a bias, are as `conv` has them.
KernelPtr make_channel_padded(const NodeView& c, const std::array<TensorType, 2>& padded, KernelPtr conv);

}  // namespace tutti::onednn
