// Sliding windows over the last two axes of NCHW images, shared by window, pooling and convolution ops.
#pragma once
#include <utility>

#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

/// One axis of a sliding window: output o reads, for each tap, the input at o * stride - padding + tap * dilation.
struct WindowAxis {
  int64_t size, kernel, stride, padding, dilation;
  int64_t count;  ///< number of outputs: floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1

  int64_t at(int64_t o, int64_t tap) const { return o * stride - padding + tap * dilation; }
  /// The extent of one window in inputs.
  int64_t reach() const { return dilation * (kernel - 1) + 1; }
  /// [first, last): the outputs whose `tap` lies inside the input.
  std::pair<int64_t, int64_t> inside(int64_t tap) const;
  /// Whether any window reads only padding.
  bool blind() const;
};

/// Axis `d` (0: height, 1: width) of a window, from the attributes stride, padding and, if present, dilation (two
/// integers each). Throws Error for a size, kernel, stride, dilation or padding out of range and for a window larger
/// than the padded input.
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

/// Windows over images of shape x, from the attributes kernel, stride, padding and, if present, dilation. Throws Error
/// if they do not match.
WindowGeometry window_geometry(const Shape& x, const Attrs& a);
/// The same for a pool; throws Error also if a window would read only padding.
WindowGeometry pool_geometry(const Shape& x, const Attrs& a);
/// The same for fold, from the shape of its input `windows`; the attribute size is the images' height and width.
WindowGeometry fold_geometry(const Shape& windows, const Attrs& a);

}  // namespace tutti
