#include "core/base/status.h"
#include "graph/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/max_pool2d.h"
#include "graph/ops/max_pool2d_nhwc_dx.h"

namespace tutti {

// public
extern TUTTI_API const OpDef max_pool2d_nhwc_op;
/// max_pool2d of channels-last images x [N, H, W, C]. Throws Error for ceil_mode.
TUTTI_API Value max_pool2d_nhwc(Value x, const Pool2dOptions& o = {});
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  return with_channels_first([&]() -> Types {
    Shape y = channels_last(pool_geometry(channels_first(in[0].shape), a).pooled());
    return {{in[0].dtype, y}, {DType::i32, y}};
  });
}

Values decompose(const Call& c) {
  Values out = call_all(max_pool2d_op, {to_channels_first(c.in[0])}, c.a);
  return {to_channels_last(out[0]), to_channels_last(out[1])};
}

}  // namespace

Value max_pool2d_nhwc(Value x, const Pool2dOptions& o) {
  if (o.ceil_mode) throw invalid("max_pool2d_nhwc does not support ceil_mode", "pad x, or use max_pool2d");
  Attrs a = o.attrs();
  a.set("dilation", o.dilation);
  return call(max_pool2d_nhwc_op, {x}, a);
}

const OpDef max_pool2d_nhwc_op{
    .name = "max_pool2d_nhwc",
    .doc = "max_pool2d of channels-last images x [N, H, W, C]; index as of max_pool2d",
    .inputs = {"x"},
    .results = {"y", "index"},
    .attrs = pool_attrs(true),
    .infer = infer,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {
          return Values{call(max_pool2d_nhwc_dx_op, {g.d[0], g.out[1]}, with_shape(g.a, g.in[0].shape()))};
        },
    .samples = {
        {.shapes = {{2, 6, 4, 3}}, .distinct = true},
        {.shapes = {{2, 7, 9, 2}},
         .attrs = {{"kernel", Ints{3, 2}}, {"stride", Ints{2, 1}}, {"padding", Ints{1, 1}}},
         .distinct = true},
        {.shapes = {{1, 9, 8, 2}},
         .attrs = {{"kernel", Ints{2, 3}}, {"stride", Ints{1, 2}}, {"padding", Ints{0, 1}}, {"dilation", Ints{3, 2}}},
         .distinct = true},
        {.shapes = {{0, 4, 4, 3}}},
        {.shapes = {{3, 28, 30, 17}}, .distinct = true}}};

}  // namespace tutti
