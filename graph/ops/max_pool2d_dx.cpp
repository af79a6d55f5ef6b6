#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/conv.h"
#include "graph/op.h"
#include "graph/ops/equal.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef max_pool2d_dx_op;
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Shape& x = a.ints("shape");
  Shape y = pool_geometry(x, a).pooled();
  if (in[0].shape != y || in[1].shape != y)
    throw invalid(fmt::format("images {} are pooled to {}, but the output gradient and the index are {} and {}",
                              to_string(x), to_string(y), to_string(in[0].shape), to_string(in[1].shape)));
  if (in[1].dtype != DType::i32) throw invalid("the index must be i32, as returned by max_pool2d");
  return {{in[0].dtype, x}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  each_pool_tap(pool_geometry(out[0].shape(), a), [&](size_t x, size_t y, int64_t tap) {
    if (in[1].at[y] == static_cast<double>(tap)) out[0].at[x] += in[0].at[y];
  });
}

/// Every cotangent at its window's selected tap, zeros at the other taps; [N, C, ky * kx, OH, OW].
Value spread(Value d, Value index, const WindowGeometry& g) {
  Shape row = {d.shape()[0], d.shape()[1], 1, g.h.count, g.w.count};
  Value hit = equal(reshape(index, row), pool_taps(d.graph(), g));
  return select(hit, reshape(d, row), d.like(0));
}

Values decompose(const Call& c) {
  const Shape& x = c.a.ints("shape");
  return {pool_scatter(spread(c.in[0], c.in[1], pool_geometry(x, c.a)), x, c.a)};
}

/// Reads the cotangent of x at every window's selected tap.
Values vjp(const VjpContext& g) {
  WindowGeometry geometry = pool_geometry(g.a.ints("shape"), g.a);
  Value columns = pool_columns(g.d[0], g.a, 0);
  Shape row = {columns.shape()[0], columns.shape()[1], 1, geometry.h.count, geometry.w.count};
  Value hit = equal(reshape(g.in[1], row), pool_taps(g.graph, geometry));
  return {sum(select(hit, columns, columns.like(0)), {2}), {}};
}

}  // namespace

const OpDef max_pool2d_dx_op{
    .name = "max_pool2d_dx",
    .doc =
        "the gradient of max_pool2d: every d added to the element of x that its window's index names; `shape` is "
        "that of x",
    .inputs = {"d", "index"},
    .results = {"dx"},
    .attrs = with_shape(pool_attrs(true), {0, 0, 0, 0}),
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp = vjp,
    .samples = {
        {.shapes = {{2, 3, 3, 2}, {2, 3, 3, 2}},
         .attrs = {{"shape", Ints{2, 3, 6, 4}}},
         .ranges = {{}, {0, 3}},
         .dtypes = {DType::f32, DType::i32}},
        {.shapes = {{2, 2, 3, 8}, {2, 2, 3, 8}},
         .attrs =
             {{"kernel", Ints{4, 2}}, {"stride", Ints{2, 1}}, {"padding", Ints{1, 0}}, {"shape", Ints{2, 2, 7, 9}}},
         .ranges = {{}, {2, 5}},
         .dtypes = {DType::f32, DType::i32}},
        {.shapes = {{1, 2, 6, 2}, {1, 2, 6, 2}},
         .attrs =
             {{"kernel", Ints{2, 3}}, {"stride", Ints{1, 2}}, {"dilation", Ints{3, 2}}, {"shape", Ints{1, 2, 9, 8}}},
         .ranges = {{}, {0, 5}},
         .dtypes = {DType::f32, DType::i32}},
        {.shapes = {{0, 3, 2, 2}, {0, 3, 2, 2}},
         .attrs = {{"shape", Ints{0, 3, 4, 4}}},
         .dtypes = {DType::f32, DType::i32}},
        {.shapes = {{3, 17, 14, 15}, {3, 17, 14, 15}},
         .attrs = {{"shape", Ints{3, 17, 28, 30}}},
         .ranges = {{}, {0, 3}},
         .dtypes = {DType::f32, DType::i32}}}};

}  // namespace tutti
