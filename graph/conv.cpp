#include "graph/conv.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/ops.h"

namespace tutti {
namespace {

constexpr int64_t limit = int64_t{1} << 30;  // keeps every product of sizes far from overflow
constexpr const char* axis_names[] = {"height", "width"};

int64_t two(const Attrs& a, const char* name, size_t d, int64_t least) {
  const Ints& list = a.ints(name);
  if (list.size() != 2) throw invalid(fmt::format("{} holds {} integers, not two (y, x)", name, list.size()));
  if (list[d] < least || list[d] > limit)
    throw invalid(fmt::format("{} {}: must be at least {} and at most {}", name, to_string(list), least, limit));
  return list[d];
}

int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

}  // namespace

std::pair<int64_t, int64_t> WindowAxis::inside(int64_t tap) const {
  int64_t shift = tap * dilation - padding;  // o is inside for 0 <= o * stride + shift < size
  int64_t last = std::min(out, ceil_div(size - shift, stride));
  return {std::min(ceil_div(-shift, stride), last), last};
}

WindowAxis window_axis(size_t d, int64_t size, int64_t kernel, const Attrs& a) {
  WindowAxis w{
      size, kernel, two(a, "stride", d, 1), two(a, "padding", d, 0), a.has("dilation") ? two(a, "dilation", d, 1) : 1,
      0};
  if (kernel < 1 || kernel > limit || size > limit)
    throw invalid(fmt::format("{} {}, kernel {}: the kernel must be at least 1, and both at most {}", axis_names[d],
                              size, kernel, limit));
  int64_t reach = w.dilation * (kernel - 1) + 1;
  if (reach > size + 2 * w.padding)
    throw invalid(fmt::format("a window of {} taps with dilation {} spans {} of the {}, which is {} with its padding",
                              kernel, w.dilation, reach, axis_names[d], size + 2 * w.padding),
                  "use a smaller kernel or dilation, more padding, or larger images");
  w.out = (size + 2 * w.padding - reach) / w.stride + 1;
  return w;
}

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

ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Attrs& a) {
  if (x.size() != 4 || w.size() != 4)
    throw invalid(
        fmt::format("images {} and weights {}: both need 4 dimensions, [N, C, H, W] and [O, C/groups, ky, kx]",
                    to_string(x), to_string(w)));
  int64_t groups = a.i("groups");
  if (groups < 1 || x[1] % groups || w[0] % groups)
    throw invalid(fmt::format("groups {} must divide the {} channels of images {} and the {} filters of weights {}",
                              groups, x[1], to_string(x), w[0], to_string(w)));
  if (x[1] / groups != w[1])
    throw invalid(fmt::format("images {} have {} channels in {} group(s), so weights {} need {} channels, not {}",
                              to_string(x), x[1], groups, to_string(w), x[1] / groups, w[1]));
  num_elements(x);
  num_elements(w);
  return {x[0], x[1], w[0], groups, window_axis(0, x[2], w[2], a), window_axis(1, x[3], w[3], a)};
}

ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Shape& d, const Attrs& a) {
  ConvGeometry g = conv_geometry(x, w, a);
  if (g.result() != d)
    throw invalid(fmt::format("images {} and weights {} give {}, but the cotangent is {}", to_string(x), to_string(w),
                              to_string(g.result()), to_string(d)));
  return g;
}

void check_same_float(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || !is_float(a.dtype)) throw invalid("both inputs need one float dtype", "cast one of them");
}

void each_conv_outside(const ConvGeometry& g, bool images, const std::function<bool(size_t)>& asked,
                       const std::function<void(size_t, size_t)>& visit) {
  int64_t depth = g.channels / g.groups, per_group = g.filters / g.groups;
  // Per axis and tap: the places of the result that read, or the pixels that are read.
  auto inside = [&](const WindowAxis& axis, int64_t tap) {
    auto [first, last] = axis.inside(tap);
    std::vector<bool> on(static_cast<size_t>(images ? axis.size : axis.out));
    for (int64_t o = first; o < last; ++o) on[static_cast<size_t>(images ? axis.at(o, tap) : o)] = true;
    return on;
  };
  size_t w = 0;
  for (int64_t o = 0; o < g.filters; ++o)
    for (int64_t c = 0; c < depth; ++c)
      for (int64_t ky = 0; ky < g.y.kernel; ++ky)
        for (int64_t kx = 0; kx < g.x.kernel; ++kx, ++w) {
          if (!asked(w)) continue;
          std::vector<bool> rows = inside(g.y, ky), columns = inside(g.x, kx);
          int64_t planes = images ? g.channels : g.filters, plane = images ? o / per_group * depth + c : o;
          for (int64_t n = 0; n < g.batch; ++n)
            for (size_t y = 0; y < rows.size(); ++y)
              for (size_t x = 0; x < columns.size(); ++x)
                if (!rows[y] || !columns[x])
                  visit(w, (static_cast<size_t>(n * planes + plane) * rows.size() + y) * columns.size() + x);
        }
}

Value conv_columns(Value x, const ConvGeometry& g, const Attrs& a) {
  Value taps = window(x, {g.y.kernel, g.x.kernel}, a.ints("stride"), a.ints("padding"), a.ints("dilation"));
  return reshape(taps, {g.batch, g.groups, g.channels / g.groups * g.y.kernel * g.x.kernel, g.y.out * g.x.out});
}

Value conv_scatter(Value columns, const ConvGeometry& g, const Attrs& a) {
  Value taps = reshape(columns, {g.batch, g.channels, g.y.kernel, g.x.kernel, g.y.out, g.x.out});
  return fold(taps, {g.y.size, g.x.size}, {g.y.kernel, g.x.kernel}, a.ints("stride"), a.ints("padding"),
              a.ints("dilation"));
}

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

PoolGeometry pool_geometry(const Shape& x, const Attrs& a) {
  if (x.size() != 4) throw invalid(fmt::format("images {} need 4 dimensions, [N, C, H, W]", to_string(x)));
  PoolGeometry g{x[0] * x[1], window_axis(0, x[2], two(a, "kernel", 0, 1), a),
                 window_axis(1, x[3], two(a, "kernel", 1, 1), a)};
  for (const WindowAxis& axis : {g.y, g.x}) {
    for (int64_t o = 0; o < axis.out; ++o) {
      int64_t tap = std::max<int64_t>(0, ceil_div(-axis.at(o, 0), axis.dilation));  // the first at 0 or beyond
      if (tap >= axis.kernel || axis.at(o, tap) >= axis.size)
        throw invalid(fmt::format("kernel {}, padding {}: a window over images {} would see nothing but padding",
                                  to_string(a.ints("kernel")), to_string(a.ints("padding")), to_string(x)),
                      "use a padding of at most half the kernel");
    }
  }
  return g;
}

Shape pooled(const Shape& x, const PoolGeometry& g) { return {x[0], x[1], g.y.out, g.x.out}; }

namespace {

Ints dilation_of(const Attrs& pool) { return pool.has("dilation") ? pool.ints("dilation") : Ints{1, 1}; }

}  // namespace

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

std::vector<double> pool_counts(const PoolGeometry& g, const Attrs& a) {
  auto count = [&](const WindowAxis& axis) {
    std::vector<double> n(static_cast<size_t>(axis.out));
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
      auto [first, last] = a.i("count_include_pad") ? std::pair{int64_t{0}, axis.out} : axis.inside(tap);
      for (int64_t o = first; o < last; ++o) ++n[static_cast<size_t>(o)];
    }
    return n;
  };
  std::vector<double> out, columns = count(g.x);
  for (double y : count(g.y))
    for (double x : columns) out.push_back(y * x);
  return out;
}

Value pool_divisor(Value like, const Shape& x, const Attrs& a) {
  PoolGeometry g = pool_geometry(x, a);
  if (a.i("count_include_pad")) return like.like(static_cast<double>(g.y.kernel * g.x.kernel));
  std::vector<double> counts = pool_counts(g, a);
  TensorType type{like.dtype(), {g.y.out, g.x.out}};
  std::vector<std::byte> data(num_bytes(type));
  for (size_t i = 0; i < counts.size(); ++i) store_element(type.dtype, data.data(), i, counts[i]);
  return like.graph().constant(type, std::move(data));
}

Value pool_taps(Graph& graph, const PoolGeometry& g) {
  int64_t count = g.y.kernel * g.x.kernel;
  TensorType type{DType::i32, {count, 1, 1}};
  std::vector<std::byte> data(num_bytes(type));
  for (int64_t i = 0; i < count; ++i)
    store_element(type.dtype, data.data(), static_cast<size_t>(i), static_cast<double>(i));
  return graph.constant(type, std::move(data));
}

}  // namespace tutti
