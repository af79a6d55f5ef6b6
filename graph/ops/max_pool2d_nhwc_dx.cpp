#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/conv.h"
#include "graph/op.h"
#include "graph/ops/max_pool2d_dx.h"

namespace tutti {

// public
extern TUTTI_API const OpDef max_pool2d_nhwc_dx_op;
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Shape& x = a.ints("shape");
  Shape y = channels_last(pool_geometry(channels_first(x), a).pooled());
  if (in[0].shape != y || in[1].shape != y)
    throw invalid(fmt::format("images {} are pooled to {}, but the output gradient and the index are {} and {}",
                              to_string(x), to_string(y), to_string(in[0].shape), to_string(in[1].shape)));
  if (in[1].dtype != DType::i32) throw invalid("the index must be i32, as returned by max_pool2d_nhwc");
  return {{in[0].dtype, x}};
}

Values decompose(const Call& c) {
  Attrs a = with_shape(c.a, channels_first(c.a.ints("shape")));
  return {to_channels_last(call(max_pool2d_dx_op, {to_channels_first(c.in[0]), to_channels_first(c.in[1])}, a))};
}

}  // namespace

const OpDef max_pool2d_nhwc_dx_op{.name = "max_pool2d_nhwc_dx",
                                  .doc = "the gradient of max_pool2d_nhwc, as max_pool2d_dx; `shape` is that of x",
                                  .inputs = {"d", "index"},
                                  .results = {"dx"},
                                  .attrs = with_shape(pool_attrs(true), {0, 0, 0, 0}),
                                  .infer = infer,
                                  .decompose = decompose,
                                  .samples = {{.shapes = {{2, 3, 2, 3}, {2, 3, 2, 3}},
                                               .attrs = {{"shape", Ints{2, 6, 4, 3}}},
                                               .ranges = {{}, {0, 3}},
                                               .dtypes = {DType::f32, DType::i32}},
                                              {.shapes = {{2, 3, 8, 2}, {2, 3, 8, 2}},
                                               .attrs = {{"kernel", Ints{4, 2}},
                                                         {"stride", Ints{2, 1}},
                                                         {"padding", Ints{1, 0}},
                                                         {"shape", Ints{2, 7, 9, 2}}},
                                               .ranges = {{}, {2, 5}},
                                               .dtypes = {DType::f32, DType::i32}},
                                              {.shapes = {{1, 6, 2, 2}, {1, 6, 2, 2}},
                                               .attrs = {{"kernel", Ints{2, 3}},
                                                         {"stride", Ints{1, 2}},
                                                         {"dilation", Ints{3, 2}},
                                                         {"shape", Ints{1, 9, 8, 2}}},
                                               .ranges = {{}, {0, 5}},
                                               .dtypes = {DType::f32, DType::i32}},
                                              {.shapes = {{0, 2, 2, 3}, {0, 2, 2, 3}},
                                               .attrs = {{"shape", Ints{0, 4, 4, 3}}},
                                               .dtypes = {DType::f32, DType::i32}},
                                              {.shapes = {{3, 14, 15, 17}, {3, 14, 15, 17}},
                                               .attrs = {{"shape", Ints{3, 28, 30, 17}}},
                                               .ranges = {{}, {0, 3}},
                                               .dtypes = {DType::f32, DType::i32}}}};

}  // namespace tutti
