#include "graph/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/status.h"
#include "graph/functions/lines.h"
#include "graph/ops/pad.h"
#include "graph/ops/reshape.h"
#include "graph/ops/transpose.h"
#include "graph/ops/window.h"

namespace tutti {
Attrs conv_attrs() {
  return {{"stride", Ints{1, 1}}, {"padding", Ints{0, 0}}, {"dilation", Ints{1, 1}}, {"groups", Ints{1}}};
}

Attrs conv_gradient_attrs() { return with_shape(conv_attrs(), {0, 0, 0, 0}); }

Attrs without_shape(const Attrs& a) {
  Attrs out;
  for (const auto& [name, value] : a)
    if (name != "shape") out.set(name, value);
  return out;
}

Attrs with_shape(const Attrs& a, const Shape& shape) {
  Attrs out = a;
  out.set("shape", shape);
  return out;
}

void check_same_float(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || !is_float(a.dtype))
    throw invalid("both inputs must have the same float dtype", "cast one of the inputs");
}

void each_conv_outside(const ConvGeometry& g, bool images, const std::function<bool(size_t)>& asked,
                       const std::function<void(size_t, size_t)>& visit) {
  int64_t depth = g.depth(), per_group = g.filters_per_group();
  int64_t planes = images ? g.channels : g.filters;
  int64_t area = images ? g.h.size * g.w.size : g.h.count * g.w.count;
  size_t w = 0;
  for (int64_t o = 0; o < g.filters; ++o)
    for (int64_t c = 0; c < depth; ++c)
      for (int64_t ky = 0; ky < g.h.kernel; ++ky)
        for (int64_t kx = 0; kx < g.w.kernel; ++kx, ++w) {
          if (!asked(w)) continue;
          int64_t plane = images ? o / per_group * depth + c : o;
          std::vector<int64_t> positions = positions_outside(g, images, ky, kx);
          for (int64_t n = 0; n < g.batch; ++n)
            for (int64_t place : positions) visit(w, static_cast<size_t>((n * planes + plane) * area + place));
        }
}

Value to_channels_last(Value x) { return transpose(x, {0, 2, 3, 1}); }
Value to_channels_first(Value x) { return transpose(x, {0, 3, 1, 2}); }

Value conv_columns(Value x, const ConvGeometry& g, const Attrs& a) {
  Value taps = window(x, {g.h.kernel, g.w.kernel}, a.ints("stride"), a.ints("padding"), a.ints("dilation"));
  return reshape(taps, {g.batch, g.groups, g.channels / g.groups * g.h.kernel * g.w.kernel, g.h.count * g.w.count});
}

Value conv_scatter(Value columns, const ConvGeometry& g, const Attrs& a) {
  Value taps = reshape(columns, {g.batch, g.channels, g.h.kernel, g.w.kernel, g.h.count, g.w.count});
  return fold(taps, {g.h.size, g.w.size}, {g.h.kernel, g.w.kernel}, a.ints("stride"), a.ints("padding"),
              a.ints("dilation"));
}

namespace {

Ints dilation_of(const Attrs& pool) { return pool.has("dilation") ? pool.ints("dilation") : Ints{1, 1}; }

}  // namespace

Attrs pool_attrs(bool dilated) {
  Attrs a = {{"kernel", Ints{2, 2}}, {"stride", Ints{2, 2}}, {"padding", Ints{0, 0}}};
  if (dilated) a.set("dilation", Ints{1, 1});
  return a;
}

Attrs avg_pool_attrs() {
  Attrs a = pool_attrs(false);
  a.set("count_include_pad", Ints{1});
  return a;
}

Value pad_to_ceil(Value x, const Pool2dOptions& o, const Attrs& a, double value) {
  if (!o.ceil_mode) return x;
  if (x.rank() != 4) throw invalid(fmt::format("images {} need 4 dimensions, [N, C, H, W]", to_string(x.shape())));
  constexpr int64_t large = 1 << 30;  // x itself may be smaller than a window
  WindowGeometry g = window_geometry({1, 1, large, large}, a);
  Ints high(4);
  for (size_t d = 0; d < 2; ++d) {
    const WindowAxis& axis = d == 0 ? g.h : g.w;
    int64_t size = x.shape()[d + 2], padded = size + 2 * axis.padding;
    if (2 * axis.padding > axis.reach())
      throw invalid(fmt::format("padding {} is more than half of the window, which spans {} elements", axis.padding,
                                axis.reach()),
                    "use a padding of at most half of the window");
    int64_t last = std::max(padded - axis.reach() + axis.stride - 1, int64_t{0}) / axis.stride;
    if (last * axis.stride >= size + axis.padding) --last;
    high[d + 2] = std::max(last * axis.stride + axis.reach() - padded, int64_t{0});
  }
  return high == Ints(4) ? x : pad(x, Ints(4), high, {}, value);
}

Value pool_columns(Value x, const Attrs& a, double value) {
  Value taps = window(x, a.ints("kernel"), a.ints("stride"), a.ints("padding"), dilation_of(a), value);
  const Shape& s = taps.shape();
  return reshape(taps, {s[0], s[1], s[2] * s[3], s[4], s[5]});
}

Value pool_scatter(Value columns, const Shape& x, const Attrs& a) {
  const Shape& s = columns.shape();
  const Ints& kernel = a.ints("kernel");
  Value taps = reshape(columns, {s[0], s[1], kernel[0], kernel[1], s[3], s[4]});
  return fold(taps, {x[2], x[3]}, kernel, a.ints("stride"), a.ints("padding"), dilation_of(a));
}

std::vector<double> pool_counts(const WindowGeometry& g, const Attrs& a) {
  auto count = [&](const WindowAxis& axis) {
    std::vector<double> n(static_cast<size_t>(axis.count));
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
      auto [first, last] = a.i("count_include_pad") ? std::pair{int64_t{0}, axis.count} : axis.inside(tap);
      for (int64_t o = first; o < last; ++o) ++n[static_cast<size_t>(o)];
    }
    return n;
  };
  std::vector<double> out, columns = count(g.w);
  for (double y : count(g.h))
    for (double x : columns) out.push_back(y * x);
  return out;
}

Value pool_divisor(Value like, const Shape& x, const Attrs& a) {
  WindowGeometry g = pool_geometry(x, a);
  if (a.i("count_include_pad")) return like.like(static_cast<double>(g.h.kernel * g.w.kernel));
  return constant_of(like.graph(), {like.dtype(), {g.h.count, g.w.count}}, pool_counts(g, a));
}

Value pool_taps(Graph& graph, const WindowGeometry& g) {
  std::vector<double> numbers(static_cast<size_t>(g.taps()));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  return constant_of(graph, {DType::i32, {g.taps(), 1, 1}}, numbers);
}

}  // namespace tutti
