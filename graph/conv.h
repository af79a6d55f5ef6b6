// Shared by convolution and pooling ops: attributes, loops over elements, windows as columns.
#pragma once
#include <fmt/format.h>

#include <functional>

#include "core/base/status.h"
#include "core/geometry/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

/// stride, padding, dilation (two integers each: y, x) and groups, with PyTorch's defaults.
Attrs conv_attrs();
/// conv_attrs() and `shape`, the shape of a gradient's result.
Attrs conv_gradient_attrs();
/// `a` without and with the attribute `shape`: converts between the attributes of a gradient op and of its forward op.
Attrs without_shape(const Attrs& a);
Attrs with_shape(const Attrs& a, const Shape& shape);
/// Throws Error unless both have the same float dtype.
void check_same_float(const TensorType& a, const TensorType& b);

/// The loop nest of all three convolution ops: calls row(x, w, y, count) for every run of `count` products x[x + i *
/// g.w.stride] * w[w] that contribute to y[y + i]. Runs of one row of y are consecutive.
template <class Row>
void each_conv_row(const ConvGeometry& g, const Row& row) {
  int64_t depth = g.depth(), per_group = g.filters_per_group();
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.filters; ++o)
      for (int64_t c = 0; c < depth; ++c)
        for (int64_t ky = 0; ky < g.h.kernel; ++ky)
          for (int64_t kx = 0; kx < g.w.kernel; ++kx) {
            auto [top, bottom] = g.h.inside(ky);
            auto [left, right] = g.w.inside(kx);
            if (left >= right) continue;
            int64_t channel = o / per_group * depth + c;
            int64_t plane = (n * g.channels + channel) * g.h.size, filter = (o * depth + c) * g.h.kernel + ky;
            int64_t rows = (n * g.filters + o) * g.h.count;
            for (int64_t oy = top; oy < bottom; ++oy)
              row((plane + g.h.at(oy, ky)) * g.w.size + g.w.at(left, kx), filter * g.w.kernel + kx,
                  (rows + oy) * g.w.count + left, right - left);
          }
}

/// Products with padding, which is a zero that takes part in the sum: calls visit(w, y) for every weight w and result
/// position y where conv2d and conv2d_dw have one, or, if `images`, visit(w, x) for every pixel x where conv2d_dx has
/// one. Only for weights with `asked(w)`.
void each_conv_outside(const ConvGeometry& g, bool images, const std::function<bool(size_t w)>& asked,
                       const std::function<void(size_t w, size_t at)>& visit);

/// Images (or weights) with their channels last, [N, H, W, C], of [N, C, H, W], and back.
Value to_channels_last(Value x);
Value to_channels_first(Value x);

/// What `infer` of an op of channels-last images gives from shapes with the channels first: its errors say so.
template <class Infer>
Types with_channels_first(const Infer& infer) {
  try {
    return infer();
  } catch (const Error& e) {
    throw Error(e.code, fmt::format("with the channels first: {}", e.what()), e.remedy);
  }
}

/// Every window of x as columns for one matrix product per sample and group: [N, groups, C/groups * ky * kx, OH * OW].
Value conv_columns(Value x, const ConvGeometry& g, const Attrs& a);
/// The adjoint of conv_columns: sums columns into images.
Value conv_scatter(Value columns, const ConvGeometry& g, const Attrs& a);

/// kernel, stride, padding and, if `dilated`, dilation; two integers each.
Attrs pool_attrs(bool dilated);
/// x padded at the end with `value`, as far as windows of ceil_mode extend beyond the padding of `a`, the pool's
/// attributes.
Value pad_to_ceil(Value x, const Pool2dOptions& o, const Attrs& a, double value);
/// Calls visit(x element, y element, tap) for every tap inside the input; taps of one window in ascending order.
template <class Visit>
void each_pool_tap(const WindowGeometry& g, const Visit& visit) {
  for (int64_t p = 0; p < g.planes(); ++p)
    for (int64_t oy = 0; oy < g.h.count; ++oy)
      for (int64_t ox = 0; ox < g.w.count; ++ox)
        for (int64_t ky = 0; ky < g.h.kernel; ++ky) {
          int64_t iy = g.h.at(oy, ky);
          if (iy < 0 || iy >= g.h.size) continue;
          for (int64_t kx = 0; kx < g.w.kernel; ++kx) {
            int64_t ix = g.w.at(ox, kx);
            if (ix < 0 || ix >= g.w.size) continue;
            visit(static_cast<size_t>((p * g.h.size + iy) * g.w.size + ix),
                  static_cast<size_t>((p * g.h.count + oy) * g.w.count + ox), ky * g.w.kernel + kx);
          }
        }
}
/// The taps of every window, [N, C, ky * kx, OH, OW]; positions in the padding hold `value`.
Value pool_columns(Value x, const Attrs& a, double value);
/// The adjoint of pool_columns: sums [N, C, ky * kx, OH, OW] into the elements of an x of that shape.
Value pool_scatter(Value columns, const Shape& x, const Attrs& a);
/// avg_pool2d's attributes: pool_attrs() and count_include_pad.
Attrs avg_pool_attrs();
/// The divisors of the window sums of one plane, [OH * OW].
std::vector<double> pool_counts(const WindowGeometry& g, const Attrs& a);
/// The same as a constant of `like`'s dtype: a scalar if all are equal, else [OH, OW].
Value pool_divisor(Value like, const Shape& x, const Attrs& a);
/// The tap indices 0 .. ky * kx - 1 as an i32 constant [ky * kx, 1, 1].
Value pool_taps(Graph& graph, const WindowGeometry& g);

}  // namespace tutti
