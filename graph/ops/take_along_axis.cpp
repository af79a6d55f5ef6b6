#include "core/geometry/index.h"
#include "graph/along_axis.h"
#include "graph/op.h"
#include "graph/ops/add_along_axis.h"
#include "graph/ops/gather.h"
#include "graph/ops/reshape.h"
#include "graph/ops/slice.h"

namespace tutti {

// public
extern TUTTI_API const OpDef take_along_axis_op;
/// y[…, i, …] = x[…, index[…, i, …], …] for every element, which is PyTorch's gather; Tutti's `gather` takes whole
/// slices. `index` (i32) may be smaller than x, and along `axis` also larger; indices outside [0, size) are clamped.
TUTTI_API Value take_along_axis(Value x, Value index, int64_t axis);
// end of public
namespace {

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  each_along(take_along_geometry(in[0].type, in[1].type, a), in[1],
             [&](size_t row, size_t at) { out[0].at[at] = in[0].at[row]; });
}

}  // namespace

Value take_along_axis(Value x, Value index, int64_t axis) {
  Shape part = index.shape();
  bool smaller = part.size() == x.rank();
  if (smaller) {
    auto at = static_cast<size_t>(normalize_axis(axis, part.size()));
    part[at] = x.shape()[at];
    for (size_t a = 0; a < part.size(); ++a) smaller = smaller && part[a] <= x.shape()[a];
  }
  if (smaller && part != x.shape()) x = slice(x, Ints(part.size()), part);
  return call(take_along_axis_op, {x, index}, {{"axis", Ints{axis}}});
}

const OpDef take_along_axis_op{
    .name = "take_along_axis",
    .doc = "y[…, i, …] = x[…, index[…, i, …], …] along `axis`; i32 index of x's shape but for `axis`, clamped",
    .inputs = {"x", "index"},
    .attrs = {{"axis", Ints{0}}},
    .infer =
        [](std::span<const TensorType> in, const Attrs& a) {
          return Types{{in[0].dtype, take_along_geometry(in[0], in[1], a).result}};
        },
    .reference = reference,
    .decompose =
        [](const Call& c) {
          Value x = c.in[0], index = c.in[1];
          if (num_elements(index.shape()) == 0) return Values{c.graph.full(x.dtype(), 0, index.shape())};
          IndexGeometry g = take_along_geometry(x.type(), index.type(), c.a);
          return Values{gather(reshape(x, {-1}), flat_index(index, g))};
        },
    .vjp =
        [](const VjpContext& g) {
          AxisGeometry x = axis_geometry(g.in[0].shape(), g.a.i("axis"));
          return Values{add_along_axis(g.in[1], g.d[0], x.size, static_cast<int64_t>(x.axis)), {}};
        },
    .samples = {{.shapes = {{4, 3}, {6, 3}}, .ranges = {{-1, 1}, {-2, 5}}, .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{2, 5, 3}, {2, 2, 3}},
                 .attrs = {{"axis", Ints{-2}}},
                 .ranges = {{-1, 1}, {0, 4}},
                 .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{3, 2}, {3, 0}}, .attrs = {{"axis", Ints{1}}}, .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{33, 70}, {33, 40}},
                 .attrs = {{"axis", Ints{1}}},
                 .ranges = {{-1, 1}, {0, 69}},
                 .dtypes = {DType::f32, DType::i32}}}};

}  // namespace tutti
