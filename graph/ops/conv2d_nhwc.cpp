#include "graph/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/conv2d.h"
#include "graph/ops/conv2d_nhwc_dw.h"
#include "graph/ops/conv2d_nhwc_dx.h"

namespace tutti {

// public
extern TUTTI_API const OpDef conv2d_nhwc_op;
/// conv2d of channels-last images: x [N, H, W, C], w [O, ky, kx, C/groups], y [N, OH, OW, O].
inline Value conv2d_nhwc(Value x, Value w, const Conv2dOptions& o = {}) {
  return call(conv2d_nhwc_op, {x, w}, o.attrs());
}
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  check_same_float(in[0], in[1]);
  return with_channels_first([&]() -> Types {
    ConvGeometry g = conv_geometry(channels_first(in[0].shape), channels_first(in[1].shape), a);
    return {{in[0].dtype, channels_last(g.result())}};
  });
}

Values decompose(const Call& c) {
  return {to_channels_last(call(conv2d_op, {to_channels_first(c.in[0]), to_channels_first(c.in[1])}, c.a))};
}

}  // namespace

const OpDef conv2d_nhwc_op{
    .name = "conv2d_nhwc",
    .doc = "conv2d of channels-last images: x is [N, H, W, C], w is [O, ky, kx, C/groups], y is [N, OH, OW, O]",
    .inputs = {"x", "w"},
    .attrs = conv_attrs(),
    .infer = infer,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {
          Value dx, dw;
          if (g.wants[0]) dx = call(conv2d_nhwc_dx_op, {g.d[0], g.in[1]}, with_shape(g.a, g.in[0].shape()));
          if (g.wants[1]) dw = call(conv2d_nhwc_dw_op, {g.in[0], g.d[0]}, with_shape(g.a, g.in[1].shape()));
          return Values{dx, dw};
        },
    .samples = {{.shapes = {{2, 6, 9, 2}, {3, 3, 2, 2}}, .attrs = {{"stride", Ints{2, 3}}, {"padding", Ints{1, 0}}}},
                {.shapes = {{1, 8, 7, 4}, {6, 3, 2, 2}},
                 .attrs = {{"padding", Ints{2, 1}}, {"dilation", Ints{2, 3}}, {"groups", Ints{2}}}},
                {.shapes = {{2, 5, 5, 3}, {3, 3, 3, 1}}, .attrs = {{"padding", Ints{1, 1}}, {"groups", Ints{3}}}},
                {.shapes = {{0, 5, 5, 2}, {3, 3, 3, 2}}},
                {.shapes = {{2, 17, 15, 16}, {24, 3, 3, 16}}, .attrs = {{"padding", Ints{1, 1}}}}}};

}  // namespace tutti
