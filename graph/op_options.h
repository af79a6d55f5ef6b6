// Options shared by several ops.
#pragma once
#include "core/base/attrs.h"

namespace tutti {

/// Options of a convolution over the last two axes, (y, x) each; `groups` divides the channels. PyTorch's defaults.
struct Conv2dOptions {
  Ints stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  int64_t groups = 1;
  Attrs attrs() const {
    return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", Ints{groups}}};
  }
};

/// Options of a pool over the last two axes, (y, x) each; an empty stride means kernel. `dilation` is only for max
/// pools. Only for average pools: `count_include_pad` (PyTorch's default) and `divisor_override`, which replaces the
/// number of elements as divisor (0: not replaced). With `ceil_mode` the last window may extend beyond the padding if
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
