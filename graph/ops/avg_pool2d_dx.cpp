#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/conv.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/avg_pool2d.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/div.h"
#include "graph/ops/reshape.h"

namespace tutti {

// public
extern TUTTI_API const OpDef avg_pool2d_dx_op;
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Shape& x = a.ints("shape");
  Shape y = pool_geometry(x, a).pooled();
  if (in[0].shape != y)
    throw invalid(fmt::format("images {} are pooled to {}, but the output gradient is {}", to_string(x), to_string(y),
                              to_string(in[0].shape)));
  return {{in[0].dtype, x}};
}

Values decompose(const Call& c) {
  const Shape& x = c.a.ints("shape");
  WindowGeometry g = pool_geometry(x, c.a);
  Value share = c.in[0] / pool_divisor(c.in[0], x, c.a);
  Value columns =
      broadcast(reshape(share, {x[0], x[1], 1, g.h.count, g.w.count}), {x[0], x[1], g.taps(), g.h.count, g.w.count});
  return {pool_scatter(columns, x, c.a)};
}

}  // namespace

const OpDef avg_pool2d_dx_op{
    .name = "avg_pool2d_dx",
    .doc = "gradient of avg_pool2d: each element of d is divided equally among its window; `shape` is the shape of x",
    .inputs = {"d"},
    .results = {"dx"},
    .attrs = with_shape(avg_pool_attrs(), {0, 0, 0, 0}),
    .infer = infer,
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          WindowGeometry g = pool_geometry(out[0].shape(), a);
          std::vector<double> counts = pool_counts(g, a);
          each_pool_tap(g,
                        [&](size_t x, size_t y, int64_t) { out[0].at[x] += in[0].at[y] / counts[y % counts.size()]; });
        },
    .decompose = in_f32<decompose>,
    .vjp = [](const VjpContext& g) { return Values{call(avg_pool2d_op, {g.d[0]}, without_shape(g.a))}; },
    .samples = {{.shapes = {{2, 3, 3, 2}}, .attrs = {{"shape", Ints{2, 3, 6, 4}}}},
                {.shapes = {{2, 2, 4, 10}},
                 .attrs = {{"kernel", Ints{3, 2}},
                           {"stride", Ints{2, 1}},
                           {"padding", Ints{1, 1}},
                           {"shape", Ints{2, 2, 7, 9}}}},
                {.shapes = {{1, 2, 7, 3}},
                 .attrs = {{"kernel", Ints{3, 4}},
                           {"stride", Ints{1, 2}},
                           {"padding", Ints{1, 2}},
                           {"count_include_pad", Ints{0}},
                           {"shape", Ints{1, 2, 7, 5}}}},
                {.shapes = {{0, 3, 2, 2}}, .attrs = {{"shape", Ints{0, 3, 4, 4}}}},
                {.shapes = {{3, 17, 14, 15}}, .attrs = {{"shape", Ints{3, 17, 28, 30}}}}}};

}  // namespace tutti
