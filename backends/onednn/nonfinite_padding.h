// Non-finite products with the zero padding of convolutions.
#pragma once
#include "backends/onednn/window.h"

namespace tutti::onednn {

/// oneDNN skips products with padding, but the op's record defines padding as zeros, whose product with inf or NaN is
/// NaN. Returns the kernel of a convolution (a node conv2d, conv2d_dx or conv2d_dw) with these products added; `conv`
/// itself if no window reaches outside the image.
KernelPtr with_nonfinite_padding(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype,
                                 int threads);

}  // namespace tutti::onednn
