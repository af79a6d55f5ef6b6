// What convolutions and pools share: windows that slide over the last two axes of an NCHW image.
#pragma once
#include <functional>
#include <utility>

#include "graph/op.h"

namespace tutti {

/// One axis of a sliding window: output o reads, for each tap, the input at o * stride - padding + tap * dilation.
struct WindowAxis {
  int64_t size, kernel, stride, padding, dilation;
  int64_t out;  ///< floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1

  int64_t at(int64_t o, int64_t tap) const { return o * stride - padding + tap * dilation; }
  /// [first, last): the outputs for which `tap` falls inside the input.
  std::pair<int64_t, int64_t> inside(int64_t tap) const;
};

/// The axis `d` (0: y, 1: x) of a window described by the attributes stride, padding and dilation (two integers each).
/// Throws Error for a size, stride, dilation or padding out of range and for a window larger than the padded input.
WindowAxis window_axis(size_t d, int64_t size, int64_t kernel, const Attrs& a);

/// A convolution y[n, o] = sum over c of x[n, c] * w[o, c]; x is NCHW, w is O, C/groups, ky, kx.
struct ConvGeometry {
  int64_t batch, channels, filters, groups;
  WindowAxis y, x;
  Shape result() const { return {batch, filters, y.out, x.out}; }
};

/// stride, padding, dilation (two integers each: y, x) and groups, with PyTorch's defaults.
Attrs conv_attrs();
/// conv_attrs() and `shape`: the type of the result of a gradient.
Attrs conv_gradient_attrs();
/// `a` without and with the attribute `shape`: from a gradient's record to its forward record and back.
Attrs without_shape(const Attrs& a);
Attrs with_shape(const Attrs& a, const Shape& shape);
/// Throws Error naming both shapes where they do not fit.
ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Attrs& a);
/// The same for a gradient, whose cotangent `d` must have the shape of the convolution's result.
ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Shape& d, const Attrs& a);
/// Throws Error unless the dtypes are one and the same float.
void check_same_float(const TensorType& a, const TensorType& b);

/// The loop nest of all three convolution records: row(x, w, y, count) for every run of `count` products
/// x[x + i * g.x.stride] * w[w] that belong to y[y + i]. Runs of one y row follow each other.
template <class Row>
void each_conv_row(const ConvGeometry& g, const Row& row) {
  int64_t depth = g.groups ? g.channels / g.groups : 0, per_group = g.groups ? g.filters / g.groups : 0;
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.filters; ++o)
      for (int64_t c = 0; c < depth; ++c)
        for (int64_t ky = 0; ky < g.y.kernel; ++ky)
          for (int64_t kx = 0; kx < g.x.kernel; ++kx) {
            auto [top, bottom] = g.y.inside(ky);
            auto [left, right] = g.x.inside(kx);
            if (left >= right) continue;
            int64_t channel = o / per_group * depth + c;
            int64_t plane = (n * g.channels + channel) * g.y.size, filter = (o * depth + c) * g.y.kernel + ky;
            int64_t rows = (n * g.filters + o) * g.y.out;
            for (int64_t oy = top; oy < bottom; ++oy)
              row((plane + g.y.at(oy, ky)) * g.x.size + g.x.at(left, kx), filter * g.x.kernel + kx,
                  (rows + oy) * g.x.out + left, right - left);
          }
}

/// Where such a product reads outside of the image, which counts as a zero that takes part: calls visit(w, y) for every
/// place y of the result and weight w for which conv2d and conv2d_dw do, visit(w, x) for every pixel for which
/// conv2d_dx does. Of the weights (of the w's) only those for which `asked(w)`.
void each_conv_outside(const ConvGeometry& g, bool images, const std::function<bool(size_t w)>& asked,
                       const std::function<void(size_t w, size_t at)>& visit);

/// Every window of x laid out for one matrix product per sample and group: [N, groups, C/groups * ky * kx, OH * OW].
Value conv_columns(Value x, const ConvGeometry& g, const Attrs& a);
/// Its adjoint: adds such columns up into images.
Value conv_scatter(Value columns, const ConvGeometry& g, const Attrs& a);

/// A pool: the window's taps over x, one result per window.
struct PoolGeometry {
  int64_t planes;  ///< N * C
  WindowAxis y, x;
};

/// kernel, stride, padding and, where `dilated`, dilation; two integers each.
Attrs pool_attrs(bool dilated);
/// Throws Error unless x is [N, C, H, W] and every window reaches at least one of its elements.
PoolGeometry pool_geometry(const Shape& x, const Attrs& a);
/// The shape of the result.
Shape pooled(const Shape& x, const PoolGeometry& g);
/// Calls visit(x element, y element, tap) for every tap inside the input, taps of one window in ascending order.
template <class Visit>
void each_pool_tap(const PoolGeometry& g, const Visit& visit) {
  for (int64_t p = 0; p < g.planes; ++p)
    for (int64_t oy = 0; oy < g.y.out; ++oy)
      for (int64_t ox = 0; ox < g.x.out; ++ox)
        for (int64_t ky = 0; ky < g.y.kernel; ++ky) {
          int64_t iy = g.y.at(oy, ky);
          if (iy < 0 || iy >= g.y.size) continue;
          for (int64_t kx = 0; kx < g.x.kernel; ++kx) {
            int64_t ix = g.x.at(ox, kx);
            if (ix < 0 || ix >= g.x.size) continue;
            visit(static_cast<size_t>((p * g.y.size + iy) * g.x.size + ix),
                  static_cast<size_t>((p * g.y.out + oy) * g.x.out + ox), ky * g.x.kernel + kx);
          }
        }
}
/// The taps of every window, [N, C, ky * kx, OH, OW]; places in the padding hold `value`.
Value pool_columns(Value x, const Attrs& a, double value);
/// The adjoint of pool_columns: sums [N, C, ky * kx, OH, OW] into the elements of an x of that shape.
Value pool_scatter(Value columns, const Shape& x, const Attrs& a);
/// avg_pool2d's attributes: pool_attrs() and count_include_pad.
Attrs avg_pool_attrs();
/// What the sum over each window of one plane is divided by, [OH * OW].
std::vector<double> pool_counts(const PoolGeometry& g, const Attrs& a);
/// The same as a constant of `like`'s dtype: a scalar where all are equal, else [OH, OW].
Value pool_divisor(Value like, const Shape& x, const Attrs& a);
/// The tap numbers 0 .. ky * kx - 1 as an i32 constant [ky * kx, 1, 1].
Value pool_taps(Graph& graph, const PoolGeometry& g);

}  // namespace tutti
