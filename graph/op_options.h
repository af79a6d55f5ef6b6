// Options that several ops share.
#pragma once
#include "core/base/attrs.h"

namespace tutti {

/// How a window moves over the last two axes, (y, x) each; `groups` divides the channels. PyTorch's defaults.
struct Conv2dOptions {
  Ints stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  int64_t groups = 1;
  Attrs attrs() const {
    return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", Ints{groups}}};
  }
};

/// A pool's window over the last two axes, (y, x) each; an empty stride means the kernel. `dilation` is for maximum
/// pools, `count_include_pad` (PyTorch's default) for averages, and so is `divisor_override`: what sums are divided by
/// instead of the number of elements, 0 for that number. With `ceil_mode` a last window may reach beyond the padding if
/// it starts in x or in the padding before it.
struct Pool2dOptions {
  Ints kernel = {2, 2}, stride = {}, padding = {0, 0}, dilation = {1, 1};
  bool count_include_pad = true, ceil_mode = false;
  int64_t divisor_override = 0;
  Attrs attrs() const {
    return {{"kernel", kernel}, {"stride", stride.empty() ? kernel : stride}, {"padding", padding}};
  }
};

}  // namespace tutti
