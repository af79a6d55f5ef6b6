#include <cmath>
#include <limits>

#include "graph/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/conv2d_dw.h"
#include "graph/ops/conv2d_dx.h"
#include "graph/ops/matmul.h"
#include "graph/ops/reshape.h"

namespace tutti {

// public
extern TUTTI_API const OpDef conv2d_op;
/// y[n, o] = sum over c, ky, kx of x[n, c] * w[o, c, ky, kx] (cross-correlation, as in PyTorch): x [N, C, H, W],
/// w [O, C/groups, ky, kx], y [N, O, OH, OW] with OH = floor((H + 2 padding - dilation (ky - 1) - 1) / stride) + 1.
inline Value conv2d(Value x, Value w, const Conv2dOptions& o = {}) { return call(conv2d_op, {x, w}, o.attrs()); }
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  check_same_float(in[0], in[1]);
  return {{in[0].dtype, conv_geometry(in[0].shape, in[1].shape, a).result()}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  ConvGeometry g = conv_geometry(in[0].shape(), in[1].shape(), a);
  const double *xs = in[0].at.data(), *ws = in[1].at.data();
  double* ys = out[0].at.data();
  each_conv_row(g, [&, step = g.w.stride](int64_t x, int64_t w, int64_t y, int64_t count) {
    const double* from = xs + x;
    double weight = ws[w], *to = ys + y;
    if (step == 1)
      for (int64_t i = 0; i < count; ++i) to[i] += weight * from[i];
    else
      for (int64_t i = 0; i < count; ++i) to[i] += weight * from[i * step];
  });
  each_conv_outside(
      g, false, [&](size_t w) { return !std::isfinite(ws[w]); },
      [&](size_t, size_t y) { ys[y] = std::numeric_limits<double>::quiet_NaN(); });
}

/// One matrix product per sample and group: weights times the columns of x.
Values decompose(const Call& c) {
  ConvGeometry g = conv_geometry(c.in[0].shape(), c.in[1].shape(), c.a);
  Value columns = conv_columns(c.in[0], g, c.a);
  Value w = reshape(c.in[1], {1, g.groups, g.filters / g.groups, columns.shape()[2]});
  return {reshape(matmul(w, columns), g.result())};
}

}  // namespace

const OpDef conv2d_op{
    .name = "conv2d",
    .doc =
        "y[n, o] = sum over c, ky, kx of x[n, c] * w[o, c, ky, kx]; x is [N, C, H, W], w is [O, C/groups, ky, kx]; "
        "stride, padding and dilation are (y, x). What lies outside of an image counts as zeros that take part: 0 "
        "times "
        "inf or NaN is NaN",
    .inputs = {"x", "w"},
    .attrs = conv_attrs(),
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {
          Value dx, dw;
          if (g.wants[0]) dx = call(conv2d_dx_op, {g.d[0], g.in[1]}, with_shape(g.a, g.in[0].shape()));
          if (g.wants[1]) dw = call(conv2d_dw_op, {g.in[0], g.d[0]}, with_shape(g.a, g.in[1].shape()));
          return Values{dx, dw};
        },
    .samples = {{.shapes = {{2, 3, 7, 5}, {4, 3, 3, 3}}},
                {.shapes = {{2, 2, 6, 9}, {3, 2, 3, 2}}, .attrs = {{"stride", Ints{2, 3}}, {"padding", Ints{1, 0}}}},
                {.shapes = {{1, 4, 8, 7}, {6, 2, 3, 2}},
                 .attrs = {{"padding", Ints{2, 1}}, {"dilation", Ints{2, 3}}, {"groups", Ints{2}}}},
                {.shapes = {{2, 3, 5, 5}, {3, 1, 3, 3}}, .attrs = {{"padding", Ints{1, 1}}, {"groups", Ints{3}}}},
                {.shapes = {{3, 5, 4, 3}, {7, 5, 1, 1}}},
                {.shapes = {{2, 1, 4, 5}, {2, 1, 2, 2}}, .attrs = {{"stride", Ints{3, 2}}, {"padding", Ints{3, 2}}}},
                {.shapes = {{0, 2, 5, 5}, {3, 2, 3, 3}}},
                {.shapes = {{2, 16, 17, 15}, {24, 16, 3, 3}}, .attrs = {{"padding", Ints{1, 1}}}}}};

}  // namespace tutti
