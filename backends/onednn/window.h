// What convolutions, pools and window copies share: reading and checking their geometry.
#pragma once
#include "backends/onednn/kernel.h"
#include "kernels/copy.h"

namespace tutti::onednn {

/// The attributes of a sliding window along one image axis (0: height, 1: width), with the number of its results.
/// Throws Error where they do not fit.
kernels::WindowAxis window_axis(const Attrs& a, size_t axis, int64_t size, int64_t kernel);

/// A convolution between x [N, C, H, W], w [O, C/groups, ky, kx] and y [N, O, OH, OW].
struct ConvGeometry {
  Shape x, w, y;
  int64_t groups;
  kernels::WindowAxis axis[2];
  dnnl::memory::dims strides() const { return {axis[0].stride, axis[1].stride}; }
  dnnl::memory::dims dilates() const { return {axis[0].dilation - 1, axis[1].dilation - 1}; }
  dnnl::memory::dims before() const { return {axis[0].padding, axis[1].padding}; }
  /// Padding at the end: what the last window reaches beyond the image; may be negative where windows leave a rest.
  dnnl::memory::dims after() const;
  double operations() const;
};
/// Throws Error where shapes and attributes do not fit.
ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Attrs& a);

/// A pool from x [N, C, H, W] to y [N, C, OH, OW].
struct PoolGeometry {
  Shape x, y;
  kernels::WindowAxis axis[2];
  dnnl::memory::dims kernel() const { return {axis[0].kernel, axis[1].kernel}; }
  dnnl::memory::dims strides() const { return {axis[0].stride, axis[1].stride}; }
  dnnl::memory::dims dilates() const { return {axis[0].dilation - 1, axis[1].dilation - 1}; }
  dnnl::memory::dims before() const { return {axis[0].padding, axis[1].padding}; }
  dnnl::memory::dims after() const;
};
/// Throws Error where shape and attributes do not fit.
PoolGeometry pool_geometry(const Shape& x, const Attrs& a);

}  // namespace tutti::onednn
