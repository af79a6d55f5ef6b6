#include "core/geometry/index.h"
#include "graph/along_axis.h"
#include "graph/op.h"
#include "graph/ops/reshape.h"
#include "graph/ops/scatter_add.h"
#include "graph/ops/take_along_axis.h"

namespace tutti {

// public
extern TUTTI_API const OpDef add_along_axis_op;
/// The adjoint of take_along_axis: zeros with size `size` along `axis`, then y[…, index[…, i, …], …] += updates[…, i,
/// …] for every element, in the order of i. `index` (i32) has the shape of `updates`; indices outside [0, size) are
/// clamped.
inline Value add_along_axis(Value index, Value updates, int64_t size, int64_t axis) {
  return call(add_along_axis_op, {index, updates}, {{"size", Ints{size}}, {"axis", Ints{axis}}});
}
// end of public
namespace {

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  each_along(add_along_geometry(in[0].type, in[1].type, a), in[0],
             [&](size_t row, size_t at) { out[0].at[row] += in[1].at[at]; });
}

}  // namespace

const OpDef add_along_axis_op{
    .name = "add_along_axis",
    .doc =
        "y = zeros of dimension `size` at `axis`; y[…, index[…, i, …], …] += updates[…, i, …]; i32 index of updates' "
        "shape, clamped",
    .inputs = {"index", "updates"},
    .attrs = {{"size", Ints{1}}, {"axis", Ints{0}}},
    .ordered = true,
    .infer =
        [](std::span<const TensorType> in, const Attrs& a) {
          return Types{{in[1].dtype, add_along_geometry(in[0], in[1], a).result}};
        },
    .reference = reference,
    .decompose =
        [](const Call& c) {
          Value index = c.in[0], updates = c.in[1];
          IndexGeometry g = add_along_geometry(index.type(), updates.type(), c.a);
          int64_t total = num_elements(g.result);
          if (num_elements(index.shape()) == 0) return Values{c.graph.full(updates.dtype(), 0, g.result)};
          return Values{reshape(scatter_add(flat_index(index, g), updates, total), g.result)};
        },
    .vjp =
        [](const VjpContext& g) {
          return Values{{}, take_along_axis(g.d[0], g.in[0], g.a.i("axis"))};
        },
    .samples = {{.shapes = {{6, 3}, {6, 3}}, .attrs = {{"size", Ints{4}}}, .ranges = {{-2, 5}}, .dtypes = {DType::i32}},
                {.shapes = {{2, 4, 3}, {2, 4, 3}},
                 .attrs = {{"size", Ints{5}}, {"axis", Ints{-2}}},
                 .ranges = {{0, 4}},
                 .dtypes = {DType::i32}},
                {.shapes = {{3, 0}, {3, 0}}, .attrs = {{"size", Ints{2}}, {"axis", Ints{1}}}, .dtypes = {DType::i32}},
                {.shapes = {{33, 70}, {33, 70}},
                 .attrs = {{"size", Ints{40}}, {"axis", Ints{1}}},
                 .ranges = {{0, 39}},
                 .dtypes = {DType::i32}}}};

}  // namespace tutti
