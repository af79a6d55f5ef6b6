#include <algorithm>

#include "core/base/status.h"
#include "graph/conv.h"
#include "graph/functions/lines.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/avg_pool2d_dx.h"
#include "graph/ops/div.h"
#include "graph/ops/mul.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef avg_pool2d_op;
/// y = the average of every window of x [N, C, H, W]. With `count_include_pad` padding counts as zeros, otherwise it is
/// excluded from the average.
TUTTI_API Value avg_pool2d(Value x, const Pool2dOptions& o = {});
// end of public
namespace {

Values decompose(const Call& c) {
  return {sum(pool_columns(c.in[0], c.a, 0), {2}) / pool_divisor(c.in[0], c.in[0].shape(), c.a)};
}

/// Factors from averages over whole windows to the requested averages: with ceil_mode the last windows are smaller.
Value share_of_window(Value x, Value y, const Pool2dOptions& o, const Attrs& a) {
  auto taps = static_cast<double>(o.kernel[0] * o.kernel[1]);
  if (o.divisor_override) return y.like(taps / static_cast<double>(o.divisor_override));
  std::vector<double> counts[2], shares;
  for (size_t d = 0; d < 2; ++d)
    for (int64_t i = 0, size = x.shape()[d + 2], before = o.padding[d]; i < y.shape()[d + 2]; ++i) {
      int64_t first = i * a.ints("stride")[d] - before, last = std::min(first + o.kernel[d], size + before);
      if (!o.count_include_pad) first = std::max<int64_t>(first, 0), last = std::min(last, size);
      counts[d].push_back(static_cast<double>(last - first));
    }
  for (double rows : counts[0])
    for (double columns : counts[1]) shares.push_back(taps / (rows * columns));
  return constant_of(x.graph(), {y.dtype(), {y.shape()[2], y.shape()[3]}}, shares);
}

}  // namespace

Value avg_pool2d(Value x, const Pool2dOptions& o) {
  if (o.divisor_override < 0) throw invalid("avg_pool2d: divisor_override must not be negative", "use 1 or more");
  Attrs a = o.attrs();
  a.set("count_include_pad", Ints{o.count_include_pad});
  Value padded = pad_to_ceil(x, o, a, 0);
  if (padded == x && o.divisor_override == 0) return call(avg_pool2d_op, {x}, a);
  a.set("count_include_pad", Ints{1});
  return rounded_once(padded, [&](Value wide) {
    Value y = call(avg_pool2d_op, {wide}, a);
    return y * share_of_window(x, y, o, a);
  });
}

const OpDef avg_pool2d_op{
    .name = "avg_pool2d",
    .doc =
        "y = the average of every window of x [N, C, H, W]; count_include_pad = 1 counts the padding as zeros, 0 "
        "leaves it out",
    .inputs = {"x"},
    .attrs = avg_pool_attrs(),
    .infer =
        [](std::span<const TensorType> in, const Attrs& a) {
          return Types{{in[0].dtype, pool_geometry(in[0].shape, a).pooled()}};
        },
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          WindowGeometry g = pool_geometry(in[0].shape(), a);
          std::vector<double> counts = pool_counts(g, a);
          each_pool_tap(g, [&](size_t x, size_t y, int64_t) { out[0].at[y] += in[0].at[x]; });
          for (size_t i = 0; i < out[0].at.size(); ++i) out[0].at[i] /= counts[i % counts.size()];
        },
    .decompose = in_f32<decompose>,
    .vjp =
        [](const VjpContext& g) { return Values{call(avg_pool2d_dx_op, {g.d[0]}, with_shape(g.a, g.in[0].shape()))}; },
    .samples = {{.shapes = {{2, 3, 6, 4}}},
                {.shapes = {{2, 2, 7, 9}},
                 .attrs = {{"kernel", Ints{3, 2}}, {"stride", Ints{2, 1}}, {"padding", Ints{1, 1}}}},
                {.shapes = {{1, 2, 7, 5}},
                 .attrs = {{"kernel", Ints{3, 4}},
                           {"stride", Ints{1, 2}},
                           {"padding", Ints{1, 2}},
                           {"count_include_pad", Ints{0}}}},
                {.shapes = {{0, 3, 4, 4}}},
                {.shapes = {{3, 17, 28, 30}}}}};

}  // namespace tutti
