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

/// By the attributes stride, padding, dilation (two integers each) and groups. Throws Error naming both shapes where
/// they do not fit.
ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Attrs& a);
/// The same for a gradient, whose cotangent `d` must have the shape of the convolution's result.
ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Shape& d, const Attrs& a);

/// Where the tap (ky, kx) multiplies what lies outside, which counts as a zero that takes part: the positions of one
/// plane, row-major and ascending, of the result (it reads no pixel there) or, for the gradient to the `images`, of
/// these (no result reads them).
std::vector<int64_t> positions_outside(const ConvGeometry& g, bool images, int64_t ky, int64_t kx);

}  // namespace tutti
