#include <cmath>
#include <limits>

#include "graph/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/conv2d.h"
#include "graph/ops/conv2d_dw.h"
#include "graph/ops/matmul.h"
#include "graph/ops/reshape.h"

namespace tutti {

// public
extern TUTTI_API const OpDef conv2d_dx_op;
/// The gradient of conv2d with respect to its images, of shape `x`; d is the cotangent of the result, w are the
/// weights.
inline Value conv2d_dx(Value d, Value w, const Shape& x, const Conv2dOptions& o = {}) {
  Attrs a = o.attrs();
  a.set("shape", x);
  return call(conv2d_dx_op, {d, w}, a);
}
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  check_same_float(in[0], in[1]);
  conv_geometry(a.ints("shape"), in[1].shape, in[0].shape, a);
  return {{in[0].dtype, a.ints("shape")}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  ConvGeometry g = conv_geometry(out[0].shape(), in[1].shape(), a);
  const double *ds = in[0].at.data(), *ws = in[1].at.data();
  double* xs = out[0].at.data();
  each_conv_row(g, [&, step = g.w.stride](int64_t x, int64_t w, int64_t y, int64_t count) {
    const double* from = ds + y;
    double weight = ws[w], *to = xs + x;
    if (step == 1)
      for (int64_t i = 0; i < count; ++i) to[i] += weight * from[i];
    else
      for (int64_t i = 0; i < count; ++i) to[i * step] += weight * from[i];
  });
  each_conv_outside(
      g, true, [&](size_t w) { return !std::isfinite(ws[w]); },
      [&](size_t, size_t x) { xs[x] = std::numeric_limits<double>::quiet_NaN(); });
}

/// Transposed weights times the cotangent gives the columns; columns of overlapping windows are summed.
Values decompose(const Call& c) {
  const Shape& shape = c.a.ints("shape");
  ConvGeometry g = conv_geometry(shape, c.in[1].shape(), c.a);
  Value d = reshape(c.in[0], {g.batch, g.groups, g.filters / g.groups, g.h.count * g.w.count});
  int64_t depth = g.channels / g.groups * g.h.kernel * g.w.kernel;
  Value w = reshape(c.in[1], {1, g.groups, g.filters / g.groups, depth});
  return {conv_scatter(matmul(w, d, true), g, c.a)};
}

}  // namespace

const OpDef conv2d_dx_op{
    .name = "conv2d_dx",
    .doc =
        "the gradient of conv2d to its images: dx[n, c] = sum over o, ky, kx of d[n, o] * w[o, c, ky, kx], "
        "each product at the place of x that conv2d reads; `shape` is that of x. d counts as zeros that take part "
        "where "
        "no window reads the pixel by that tap: 0 times inf or NaN is NaN",
    .inputs = {"d", "w"},
    .results = {"dx"},
    .attrs = conv_gradient_attrs(),
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {
          Value dd, dw;
          if (g.wants[0]) dd = call(conv2d_op, {g.d[0], g.in[1]}, without_shape(g.a));
          if (g.wants[1]) dw = call(conv2d_dw_op, {g.d[0], g.in[0]}, with_shape(g.a, g.in[1].shape()));
          return Values{dd, dw};
        },
    .samples = {{.shapes = {{2, 4, 5, 3}, {4, 3, 3, 3}}, .attrs = {{"shape", Ints{2, 3, 7, 5}}}},
                {.shapes = {{2, 3, 3, 3}, {3, 2, 3, 2}},
                 .attrs = {{"stride", Ints{2, 3}}, {"padding", Ints{1, 0}}, {"shape", Ints{2, 2, 6, 9}}}},
                {.shapes = {{1, 6, 8, 6}, {6, 2, 3, 2}},
                 .attrs = {{"padding", Ints{2, 1}},
                           {"dilation", Ints{2, 3}},
                           {"groups", Ints{2}},
                           {"shape", Ints{1, 4, 8, 7}}}},
                {.shapes = {{2, 3, 5, 5}, {3, 1, 3, 3}},
                 .attrs = {{"padding", Ints{1, 1}}, {"groups", Ints{3}}, {"shape", Ints{2, 3, 5, 5}}}},
                {.shapes = {{0, 3, 3, 3}, {3, 2, 3, 3}}, .attrs = {{"shape", Ints{0, 2, 5, 5}}}},
                {.shapes = {{2, 24, 17, 15}, {24, 16, 3, 3}},
                 .attrs = {{"padding", Ints{1, 1}}, {"shape", Ints{2, 16, 17, 15}}}}}};

}  // namespace tutti
