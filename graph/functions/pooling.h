// 1-d, 3-d and adaptive pooling, max unpooling and power-average pooling; max_pool2d and avg_pool2d are ops.
#pragma once
#include "core/base/attrs.h"
#include "core/base/export.h"
#include "graph/graph.h"
#include "graph/op_options.h"

namespace tutti {

/// Pool2dOptions for one axis; stride 0 means kernel.
struct TUTTI_API Pool1dOptions {
  int64_t kernel = 2, stride = 0, padding = 0, dilation = 1;
  bool count_include_pad = true, ceil_mode = false;
};
/// Pool2dOptions for three axes, (z, y, x) each.
struct TUTTI_API Pool3dOptions {
  Ints kernel = {2, 2, 2}, stride = {}, padding = {0, 0, 0}, dilation = {1, 1, 1};
  bool count_include_pad = true, ceil_mode = false;
  int64_t divisor_override = 0;
};

/// The maximum of every window of x [N, C, L].
TUTTI_API Value max_pool1d(Value x, const Pool1dOptions& o = {});
/// The average of every window of x [N, C, L].
TUTTI_API Value avg_pool1d(Value x, const Pool1dOptions& o = {});
/// The maximum of every window of x [N, C, D, H, W].
TUTTI_API Value max_pool3d(Value x, const Pool3dOptions& o = {});
/// The average of every window of x [N, C, D, H, W].
TUTTI_API Value avg_pool3d(Value x, const Pool3dOptions& o = {});
/// An image [N, C, H, W] of `size` (H, W), zeros except that every element of y is placed in its window where `index`
/// says: the index of max_pool2d_with_index with the same options. Where windows overlap, elements are added.
TUTTI_API Value max_unpool2d(Value y, Value index, const Ints& size, const Pool2dOptions& o = {});

/// (sum of x^p)^(1/p) of every window; uses kernel, stride and ceil_mode of the options.
TUTTI_API Value lp_pool1d(Value x, double p, const Pool1dOptions& o = {});
TUTTI_API Value lp_pool2d(Value x, double p, const Pool2dOptions& o = {});

/// The averages of size[k] windows along each of the last axes, at most three: window i of n over H positions is
/// floor(i H / n) to ceil((i + 1) H / n); -1 keeps the axis. x is [N, C, spatial axes…]. If n does not divide H, the
/// axis is multiplied by a matrix: an infinity or NaN spreads over its whole line.
TUTTI_API Value adaptive_avg_pool(Value x, const Ints& size);
/// The maximums of the same windows.
TUTTI_API Value adaptive_max_pool(Value x, const Ints& size);

}  // namespace tutti
