#include "graph/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/conv2d_dw.h"
#include "graph/ops/conv2d_nhwc.h"
#include "graph/ops/conv2d_nhwc_dx.h"

namespace tutti {

// public
extern TUTTI_API const OpDef conv2d_nhwc_dw_op;
/// The gradient of conv2d_nhwc with respect to its weights, of shape `w`; x are the images, d is the cotangent of the
/// result.
inline Value conv2d_nhwc_dw(Value x, Value d, const Shape& w, const Conv2dOptions& o = {}) {
  Attrs a = o.attrs();
  a.set("shape", w);
  return call(conv2d_nhwc_dw_op, {x, d}, a);
}
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  check_same_float(in[0], in[1]);
  return with_channels_first([&]() -> Types {
    const Shape& w = a.ints("shape");
    conv_geometry(channels_first(in[0].shape), channels_first(w), channels_first(in[1].shape), a);
    return {{in[0].dtype, w}};
  });
}

Values decompose(const Call& c) {
  Attrs a = with_shape(c.a, channels_first(c.a.ints("shape")));
  return {to_channels_last(call(conv2d_dw_op, {to_channels_first(c.in[0]), to_channels_first(c.in[1])}, a))};
}

}  // namespace

const OpDef conv2d_nhwc_dw_op{
    .name = "conv2d_nhwc_dw",
    .doc = "the gradient of conv2d_nhwc to its weights, as conv2d_dw; `shape` is that of w",
    .inputs = {"x", "d"},
    .results = {"dw"},
    .attrs = conv_gradient_attrs(),
    .infer = infer,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {
          Value dx, dd;
          if (g.wants[0]) dx = call(conv2d_nhwc_dx_op, {g.in[1], g.d[0]}, with_shape(g.a, g.in[0].shape()));
          if (g.wants[1]) dd = call(conv2d_nhwc_op, {g.in[0], g.d[0]}, without_shape(g.a));
          return Values{dx, dd};
        },
    .samples = {{.shapes = {{2, 6, 9, 2}, {2, 3, 3, 3}},
                 .attrs = {{"stride", Ints{2, 3}}, {"padding", Ints{1, 0}}, {"shape", Ints{3, 3, 2, 2}}}},
                {.shapes = {{1, 8, 7, 4}, {1, 8, 6, 6}},
                 .attrs = {{"padding", Ints{2, 1}},
                           {"dilation", Ints{2, 3}},
                           {"groups", Ints{2}},
                           {"shape", Ints{6, 3, 2, 2}}}},
                {.shapes = {{0, 5, 5, 2}, {0, 3, 3, 3}}, .attrs = {{"shape", Ints{3, 3, 3, 2}}}},
                {.shapes = {{2, 17, 15, 16}, {2, 17, 15, 24}},
                 .attrs = {{"padding", Ints{1, 1}}, {"shape", Ints{24, 3, 3, 16}}}}}};

}  // namespace tutti
