#include <cmath>
#include <limits>

#include "graph/conv.h"
#include "graph/op.h"
#include "graph/op_options.h"
#include "graph/ops/argmax.h"
#include "graph/ops/max.h"
#include "graph/ops/max_pool2d_dx.h"

namespace tutti {

// public
extern TUTTI_API const OpDef max_pool2d_op;
/// y = the largest element of every window of x [N, C, H, W], and its tap index ky * width + kx (i32); of equal
/// elements the first, never the padding.
TUTTI_API Values max_pool2d_with_index(Value x, const Pool2dOptions& o = {});
inline Value max_pool2d(Value x, const Pool2dOptions& o = {}) { return max_pool2d_with_index(x, o)[0]; }
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  Shape y = pool_geometry(in[0].shape, a).pooled();
  return {{in[0].dtype, y}, {DType::i32, y}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  WindowGeometry g = pool_geometry(in[0].shape(), a);
  const auto& x = in[0].at;
  auto &best = out[0].at, &index = out[1].at;
  std::fill(index.begin(), index.end(), -1);
  each_pool_tap(g, [&](size_t from, size_t to, int64_t tap) {  // NaN wins, as in PyTorch
    if (index[to] >= 0 && !(x[from] > best[to]) && !(std::isnan(x[from]) && !std::isnan(best[to]))) return;
    best[to] = x[from];
    index[to] = static_cast<double>(tap);
  });
}

/// Padding is -inf: argmax selects it only if the whole window is -inf.
Values decompose(const Call& c) {
  Value columns = pool_columns(c.in[0], c.a, -std::numeric_limits<double>::infinity());
  return {max(columns, {2}), argmax(columns, {2})};
}

}  // namespace

Values max_pool2d_with_index(Value x, const Pool2dOptions& o) {
  Attrs a = o.attrs();
  a.set("dilation", o.dilation);
  return call_all(max_pool2d_op, {pad_to_ceil(x, o, a, -std::numeric_limits<double>::infinity())}, a);
}

const OpDef max_pool2d_op{
    .name = "max_pool2d",
    .doc =
        "y = the largest element of every window of x [N, C, H, W]; index = its tap ky * kernel[1] + kx (i32), the "
        "first of equals, never the padding",
    .inputs = {"x"},
    .results = {"y", "index"},
    .attrs = pool_attrs(true),
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {
          return Values{call(max_pool2d_dx_op, {g.d[0], g.out[1]}, with_shape(g.a, g.in[0].shape()))};
        },
    .samples = {
        {.shapes = {{2, 3, 6, 4}}, .distinct = true},
        {.shapes = {{2, 2, 7, 9}},
         .attrs = {{"kernel", Ints{3, 2}}, {"stride", Ints{2, 1}}, {"padding", Ints{1, 1}}},
         .distinct = true},
        {.shapes = {{1, 2, 9, 8}},
         .attrs = {{"kernel", Ints{2, 3}}, {"stride", Ints{1, 2}}, {"padding", Ints{0, 1}}, {"dilation", Ints{3, 2}}},
         .distinct = true},
        {.shapes = {{1, 1, 5, 5}},
         .low = -9,
         .high = -1,
         .attrs = {{"kernel", Ints{3, 3}}, {"padding", Ints{1, 1}}},
         .distinct = true},
        {.shapes = {{0, 3, 4, 4}}},
        {.shapes = {{3, 17, 28, 30}}, .distinct = true}}};

}  // namespace tutti
