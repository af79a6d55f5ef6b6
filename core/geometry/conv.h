// Convolutions y[n, o] = sum over c of x[n, c] * w[o, c]; x is NCHW, w is O, C/groups, ky, kx.
#pragma once
#include "core/geometry/window.h"

namespace tutti {

struct ConvGeometry {
  int64_t batch, channels, filters, groups;
  WindowAxis h, w;

  int64_t depth() const { return channels / groups; }  ///< channels that one filter sees
  int64_t filters_per_group() const { return filters / groups; }
  Shape images() const { return {batch, channels, h.size, w.size}; }
  Shape weights() const { return {filters, depth(), h.kernel, w.kernel}; }
  Shape result() const { return {batch, filters, h.count, w.count}; }
};

/// From the attributes stride, padding, dilation (two integers each) and groups. Throws Error naming both shapes if
/// they do not match.
ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Attrs& a);
/// The same for a gradient; its cotangent `d` must have the shape of the convolution's result.
ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Shape& d, const Attrs& a);

/// The shape with the channels last, [N, H, W, C] of [N, C, H, W], or first again; the same for weights. Throws Error
/// unless there are four dimensions.
Shape channels_last(const Shape& first);
Shape channels_first(const Shape& last);

/// Positions where the tap (ky, kx) multiplies padding, which is a zero that takes part in the sum. Positions in one
/// plane, row-major and ascending: of the result (where it reads no pixel) or, if `images`, of the gradient of the
/// images (pixels that no result reads).
std::vector<int64_t> positions_outside(const ConvGeometry& g, bool images, int64_t ky, int64_t kx);
/// Whether no tap has such positions.
bool all_inside(const ConvGeometry& g, bool images);

}  // namespace tutti
