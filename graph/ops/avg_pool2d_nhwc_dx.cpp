#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/conv.h"
#include "graph/op.h"
#include "graph/ops/avg_pool2d_dx.h"
#include "graph/ops/avg_pool2d_nhwc.h"

namespace tutti {

// public
extern TUTTI_API const OpDef avg_pool2d_nhwc_dx_op;
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Shape& x = a.ints("shape");
  Shape y = channels_last(pool_geometry(channels_first(x), a).pooled());
  if (in[0].shape != y)
    throw invalid(fmt::format("images {} are pooled to {}, but the output gradient is {}", to_string(x), to_string(y),
                              to_string(in[0].shape)));
  return {{in[0].dtype, x}};
}

Values decompose(const Call& c) {
  Attrs a = with_shape(c.a, channels_first(c.a.ints("shape")));
  return {to_channels_last(call(avg_pool2d_dx_op, {to_channels_first(c.in[0])}, a))};
}

}  // namespace

const OpDef avg_pool2d_nhwc_dx_op{
    .name = "avg_pool2d_nhwc_dx",
    .doc = "the gradient of avg_pool2d_nhwc, as avg_pool2d_dx; `shape` is that of x",
    .inputs = {"d"},
    .results = {"dx"},
    .attrs = with_shape(avg_pool_attrs(), {0, 0, 0, 0}),
    .infer = infer,
    .decompose = decompose,
    .vjp = [](const VjpContext& g) { return Values{call(avg_pool2d_nhwc_op, {g.d[0]}, without_shape(g.a))}; },
    .samples = {{.shapes = {{2, 3, 2, 3}}, .attrs = {{"shape", Ints{2, 6, 4, 3}}}},
                {.shapes = {{2, 4, 10, 2}},
                 .attrs = {{"kernel", Ints{3, 2}},
                           {"stride", Ints{2, 1}},
                           {"padding", Ints{1, 1}},
                           {"shape", Ints{2, 7, 9, 2}}}},
                {.shapes = {{1, 7, 3, 2}},
                 .attrs = {{"kernel", Ints{3, 4}},
                           {"stride", Ints{1, 2}},
                           {"padding", Ints{1, 2}},
                           {"count_include_pad", Ints{0}},
                           {"shape", Ints{1, 7, 5, 2}}}},
                {.shapes = {{0, 2, 2, 3}}, .attrs = {{"shape", Ints{0, 4, 4, 3}}}},
                {.shapes = {{3, 14, 15, 17}}, .attrs = {{"shape", Ints{3, 28, 30, 17}}}}}};

}  // namespace tutti
