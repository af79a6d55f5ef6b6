#include "core/base/status.h"
#include "graph/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/avg_pool2d.h"
#include "graph/ops/avg_pool2d_nhwc_dx.h"

namespace tutti {

// public
extern TUTTI_API const OpDef avg_pool2d_nhwc_op;
/// avg_pool2d of channels-last images x [N, H, W, C]. Throws Error for ceil_mode and divisor_override.
TUTTI_API Value avg_pool2d_nhwc(Value x, const Pool2dOptions& o = {});
// end of public

Value avg_pool2d_nhwc(Value x, const Pool2dOptions& o) {
  if (o.ceil_mode || o.divisor_override)
    throw invalid("avg_pool2d_nhwc does not support ceil_mode and divisor_override", "use avg_pool2d");
  Attrs a = o.attrs();
  a.set("count_include_pad", Ints{o.count_include_pad});
  return call(avg_pool2d_nhwc_op, {x}, a);
}

const OpDef avg_pool2d_nhwc_op{
    .name = "avg_pool2d_nhwc",
    .doc = "avg_pool2d of channels-last images x [N, H, W, C]",
    .inputs = {"x"},
    .attrs = avg_pool_attrs(),
    .infer =
        [](std::span<const TensorType> in, const Attrs& a) {
          return with_channels_first([&]() -> Types {
            return {{in[0].dtype, channels_last(pool_geometry(channels_first(in[0].shape), a).pooled())}};
          });
        },
    .decompose =
        [](const Call& c) { return Values{to_channels_last(call(avg_pool2d_op, {to_channels_first(c.in[0])}, c.a))}; },
    .vjp =
        [](const VjpContext& g) {
          return Values{call(avg_pool2d_nhwc_dx_op, {g.d[0]}, with_shape(g.a, g.in[0].shape()))};
        },
    .samples = {{.shapes = {{2, 6, 4, 3}}},
                {.shapes = {{2, 7, 9, 2}},
                 .attrs = {{"kernel", Ints{3, 2}}, {"stride", Ints{2, 1}}, {"padding", Ints{1, 1}}}},
                {.shapes = {{1, 7, 5, 2}},
                 .attrs = {{"kernel", Ints{3, 4}},
                           {"stride", Ints{1, 2}},
                           {"padding", Ints{1, 2}},
                           {"count_include_pad", Ints{0}}}},
                {.shapes = {{0, 4, 4, 3}}},
                {.shapes = {{3, 28, 30, 17}}}}};

}  // namespace tutti
