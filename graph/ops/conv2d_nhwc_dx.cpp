#include "graph/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/conv2d_dx.h"
#include "graph/ops/conv2d_nhwc.h"
#include "graph/ops/conv2d_nhwc_dw.h"

namespace tutti {

// public
extern TUTTI_API const OpDef conv2d_nhwc_dx_op;
/// The gradient of conv2d_nhwc with respect to its images, of shape `x`; d is the cotangent of the result, w are the
/// weights.
inline Value conv2d_nhwc_dx(Value d, Value w, const Shape& x, const Conv2dOptions& o = {}) {
  Attrs a = o.attrs();
  a.set("shape", x);
  return call(conv2d_nhwc_dx_op, {d, w}, a);
}
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  check_same_float(in[0], in[1]);
  return with_channels_first([&]() -> Types {
    const Shape& x = a.ints("shape");
    conv_geometry(channels_first(x), channels_first(in[1].shape), channels_first(in[0].shape), a);
    return {{in[0].dtype, x}};
  });
}

Values decompose(const Call& c) {
  Attrs a = with_shape(c.a, channels_first(c.a.ints("shape")));
  return {to_channels_last(call(conv2d_dx_op, {to_channels_first(c.in[0]), to_channels_first(c.in[1])}, a))};
}

}  // namespace

const OpDef conv2d_nhwc_dx_op{
    .name = "conv2d_nhwc_dx",
    .doc = "the gradient of conv2d_nhwc to its images, as conv2d_dx; `shape` is that of x",
    .inputs = {"d", "w"},
    .results = {"dx"},
    .attrs = conv_gradient_attrs(),
    .infer = infer,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {
          Value dd, dw;
          if (g.wants[0]) dd = call(conv2d_nhwc_op, {g.d[0], g.in[1]}, without_shape(g.a));
          if (g.wants[1]) dw = call(conv2d_nhwc_dw_op, {g.d[0], g.in[0]}, with_shape(g.a, g.in[1].shape()));
          return Values{dd, dw};
        },
    .samples = {{.shapes = {{2, 3, 3, 3}, {3, 3, 2, 2}},
                 .attrs = {{"stride", Ints{2, 3}}, {"padding", Ints{1, 0}}, {"shape", Ints{2, 6, 9, 2}}}},
                {.shapes = {{1, 8, 6, 6}, {6, 3, 2, 2}},
                 .attrs = {{"padding", Ints{2, 1}},
                           {"dilation", Ints{2, 3}},
                           {"groups", Ints{2}},
                           {"shape", Ints{1, 8, 7, 4}}}},
                {.shapes = {{0, 3, 3, 3}, {3, 3, 3, 2}}, .attrs = {{"shape", Ints{0, 5, 5, 2}}}},
                {.shapes = {{2, 17, 15, 24}, {24, 3, 3, 16}},
                 .attrs = {{"padding", Ints{1, 1}}, {"shape", Ints{2, 17, 15, 16}}}}}};

}  // namespace tutti
