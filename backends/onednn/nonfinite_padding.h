// What convolutions multiply outside of an image: zeros that take part.
#pragma once
#include "backends/onednn/window.h"

namespace tutti::onednn {

/// oneDNN leaves out the products with what lies outside of an image, which the op's record counts as zeros: beside an
/// inf or NaN they are NaN. The kernel of a convolution (a node conv2d, conv2d_dx or conv2d_dw) with these added where
/// there are any; `conv` itself where no window reaches outside.
KernelPtr with_nonfinite_padding(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype,
                                 int threads);

}  // namespace tutti::onednn
