#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/concat.h"
#include "graph/ops/conv2d.h"
#include "graph/ops/conv2d_dx.h"
#include "graph/ops/matmul.h"
#include "graph/ops/mul.h"
#include "graph/ops/pad.h"
#include "graph/ops/reshape.h"
#include "graph/ops/slice.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef conv2d_dw_op;
/// The gradient of conv2d with respect to its weights, of shape `w`; x are the images, d is the cotangent of the
/// result.
inline Value conv2d_dw(Value x, Value d, const Shape& w, const Conv2dOptions& o = {}) {
  Attrs a = o.attrs();
  a.set("shape", w);
  return call(conv2d_dw_op, {x, d}, a);
}
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  check_same_float(in[0], in[1]);
  conv_geometry(in[0].shape, a.ints("shape"), in[1].shape, a);
  return {{in[0].dtype, a.ints("shape")}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  ConvGeometry g = conv_geometry(in[0].shape(), out[0].shape(), a);
  const double *xs = in[0].at.data(), *ds = in[1].at.data();
  double* ws = out[0].at.data();
  each_conv_row(g, [&, step = g.w.stride](int64_t x, int64_t w, int64_t y, int64_t count) {
    const double *p = xs + x, *q = ds + y;
    double s[4] = {};  // independent sums, so that the compiler can use vector registers
    int64_t i = 0;
    if (step == 1)
      for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; ++k) s[k] += p[i + k] * q[i + k];
    for (; i < count; ++i) s[0] += p[i * step] * q[i];
    ws[w] += (s[0] + s[1]) + (s[2] + s[3]);
  });
  if (std::all_of(in[1].at.begin(), in[1].at.end(), [](double d) { return std::isfinite(d); })) return;
  each_conv_outside(
      g, false, [](size_t) { return true; },
      [&](size_t w, size_t d) {
        if (!std::isfinite(ds[d])) ws[w] = std::numeric_limits<double>::quiet_NaN();
      });
}

/// For one channel per group: sums products tap by tap. Columns of x would need the memory of all taps at once, for
/// matrix products with one row.
Value depthwise(const Call& c, const ConvGeometry& g) {
  auto behind = [](const WindowAxis& a) {
    return std::max<int64_t>(0, (a.count - 1) * a.stride + a.reach() - a.size - a.padding);
  };
  auto stop = [](const WindowAxis& a, int64_t start) { return start + (a.count - 1) * a.stride + 1; };
  Value x = pad(c.in[0], {0, 0, g.h.padding, g.w.padding}, {0, 0, behind(g.h), behind(g.w)});
  Value d = reshape(c.in[1], {g.batch, g.groups, g.filters_per_group(), g.h.count, g.w.count});
  Values taps;
  for (int64_t ky = 0; ky < g.h.kernel; ++ky)
    for (int64_t kx = 0; kx < g.w.kernel; ++kx) {
      int64_t top = ky * g.h.dilation, left = kx * g.w.dilation;
      Value read = slice(x, {0, 0, top, left}, {g.batch, g.channels, stop(g.h, top), stop(g.w, left)},
                         {1, 1, g.h.stride, g.w.stride});
      read = reshape(read, {g.batch, g.groups, 1, g.h.count, g.w.count});
      taps.push_back(reshape(sum(d * read, {0, 3, 4}), {g.filters, 1}));
    }
  return reshape(taps.size() == 1 ? taps[0] : concat(taps, 1), c.a.ints("shape"));
}

/// The cotangent times the transposed columns of x, summed over the samples.
Values decompose(const Call& c) {
  const Shape& shape = c.a.ints("shape");
  ConvGeometry g = conv_geometry(c.in[0].shape(), shape, c.a);
  if (g.groups > 1 && g.depth() == 1) return {depthwise(c, g)};
  Value d = reshape(c.in[1], {g.batch, g.groups, g.filters / g.groups, g.h.count * g.w.count});
  return {reshape(sum(matmul(d, conv_columns(c.in[0], g, c.a), false, true), {0}), shape)};
}

}  // namespace

const OpDef conv2d_dw_op{
    .name = "conv2d_dw",
    .doc =
        "the gradient of conv2d to its weights: dw[o, c, ky, kx] = sum over n and positions of x[n, c] * d[n, o]; "
        "`shape` is that of w. What lies outside of an image counts as zeros that take part: 0 times inf or NaN is NaN",
    .inputs = {"x", "d"},
    .results = {"dw"},
    .attrs = conv_gradient_attrs(),
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {
          Value dx, dd;
          if (g.wants[0]) dx = call(conv2d_dx_op, {g.in[1], g.d[0]}, with_shape(g.a, g.in[0].shape()));
          if (g.wants[1]) dd = call(conv2d_op, {g.in[0], g.d[0]}, without_shape(g.a));
          return Values{dx, dd};
        },
    .samples = {{.shapes = {{2, 3, 7, 5}, {2, 4, 5, 3}}, .attrs = {{"shape", Ints{4, 3, 3, 3}}}},
                {.shapes = {{2, 2, 6, 9}, {2, 3, 3, 3}},
                 .attrs = {{"stride", Ints{2, 3}}, {"padding", Ints{1, 0}}, {"shape", Ints{3, 2, 3, 2}}}},
                {.shapes = {{1, 4, 8, 7}, {1, 6, 8, 6}},
                 .attrs = {{"padding", Ints{2, 1}},
                           {"dilation", Ints{2, 3}},
                           {"groups", Ints{2}},
                           {"shape", Ints{6, 2, 3, 2}}}},
                {.shapes = {{2, 3, 5, 5}, {2, 3, 5, 5}},
                 .attrs = {{"padding", Ints{1, 1}}, {"groups", Ints{3}}, {"shape", Ints{3, 1, 3, 3}}}},
                {.shapes = {{2, 4, 8, 7}, {2, 8, 4, 2}},
                 .attrs = {{"stride", Ints{2, 3}},
                           {"padding", Ints{2, 1}},
                           {"dilation", Ints{2, 3}},
                           {"groups", Ints{4}},
                           {"shape", Ints{8, 1, 3, 2}}}},
                {.shapes = {{0, 2, 5, 5}, {0, 3, 3, 3}}, .attrs = {{"shape", Ints{3, 2, 3, 3}}}},
                {.shapes = {{2, 16, 17, 15}, {2, 24, 17, 15}},
                 .attrs = {{"padding", Ints{1, 1}}, {"shape", Ints{24, 16, 3, 3}}}}}};

}  // namespace tutti
