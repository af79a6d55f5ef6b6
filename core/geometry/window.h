// Windows that slide over the last two axes of NCHW images: what windows, pools and convolutions share.
#pragma once
#include <utility>

#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

/// One axis of a sliding window: output o reads, for each tap, the input at o * stride - padding + tap * dilation.
struct WindowAxis {
  int64_t size, kernel, stride, padding, dilation;
  int64_t count;  ///< of outputs: floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1

  int64_t at(int64_t o, int64_t tap) const { return o * stride - padding + tap * dilation; }
  /// How many inputs one window spans.
  int64_t reach() const { return dilation * (kernel - 1) + 1; }
  /// [first, last): the outputs for which `tap` falls inside the input.
  std::pair<int64_t, int64_t> inside(int64_t tap) const;
  /// Whether some window reads nothing but padding.
  bool blind() const;
};

/// The axis `d` (0: height, 1: width) of a window by the attributes stride, padding and, where there is one, dilation
/// (two integers each). Throws Error for a size, kernel, stride, dilation or padding out of range and for a window
/// larger than the padded input.
WindowAxis window_axis(const Attrs& a, size_t d, int64_t size, int64_t kernel);

/// Windows over images [batch, channels, h.size, w.size].
struct WindowGeometry {
  int64_t batch, channels;
  WindowAxis h, w;

  int64_t planes() const { return batch * channels; }
  int64_t taps() const { return h.kernel * w.kernel; }
  Shape images() const { return {batch, channels, h.size, w.size}; }
  Shape pooled() const { return {batch, channels, h.count, w.count}; }  ///< one result per window
  Shape windows() const { return {batch, channels, h.kernel, w.kernel, h.count, w.count}; }
};

/// Windows over images of shape x by the attributes kernel, stride, padding and, where there is one, dilation. Throws
/// Error where they do not fit.
WindowGeometry window_geometry(const Shape& x, const Attrs& a);
/// The same for a pool: every window must reach at least one element.
WindowGeometry pool_geometry(const Shape& x, const Attrs& a);
/// The same by what fold adds up: `windows` of images whose height and width are the attribute size.
WindowGeometry fold_geometry(const Shape& windows, const Attrs& a);

}  // namespace tutti
