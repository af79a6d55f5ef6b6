#include <algorithm>

#include "core/geometry/index.h"
#include "graph/op.h"
#include "graph/ops/scatter_add.h"

namespace tutti {

// public
extern TUTTI_API const OpDef gather_op;
/// y = x with `axis` replaced by the axes of `index` (i32, any shape): y[…, i…, …] = x[…, index[i…], …]. Indices
/// outside [0, size) are clamped: check labels and tokens beforehand.
inline Value gather(Value x, Value index, int64_t axis = 0) {
  return call(gather_op, {x, index}, {{"axis", Ints{axis}}});
}
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  return {{in[0].dtype, gather_geometry(in[0], in[1], a).result}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  IndexGeometry g = gather_geometry(in[0].type, in[1].type, a);
  auto outer = static_cast<size_t>(g.outer), size = static_cast<size_t>(g.size), inner = static_cast<size_t>(g.inner);
  double* y = out[0].at.data();
  for (size_t o = 0; o < outer; ++o)
    for (double i : in[1].at) {
      auto row = static_cast<size_t>(std::clamp(i, 0.0, static_cast<double>(size) - 1));
      std::copy_n(in[0].at.data() + (o * size + row) * inner, inner, y);
      y += inner;
    }
}

}  // namespace

const OpDef gather_op{
    .name = "gather",
    .doc = "y[…, i…, …] = x[…, index[i…], …] along `axis`; index is i32 of any shape, clamped to the axis",
    .inputs = {"x", "index"},
    .attrs = {{"axis", Ints{0}}},
    .ordered = true,
    .infer = infer,
    .reference = reference,
    .vjp =
        [](const VjpContext& g) {
          AxisGeometry x = axis_geometry(g.in[0].shape(), g.a.i("axis"));
          return Values{scatter_add(g.in[1], g.d[0], x.size, static_cast<int64_t>(x.axis)), {}};
        },
    .samples = {{.shapes = {{5, 3}, {4}}, .ranges = {{-1, 1}, {0, 4}}, .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{2, 5, 3}, {2, 3}},
                 .attrs = {{"axis", Ints{1}}},
                 .ranges = {{-1, 1}, {0, 4}},
                 .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{3, 4}, {}},
                 .attrs = {{"axis", Ints{-1}}},
                 .ranges = {{-1, 1}, {0, 3}},
                 .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{4, 2}, {9}}, .ranges = {{-1, 1}, {-3, 8}}, .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{4, 2}, {0}}, .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{6}, {5}}, .ranges = {{-9, 9}, {0, 5}}, .dtypes = {DType::i32, DType::i32}},
                {.shapes = {{70, 65}, {129}}, .ranges = {{-1, 1}, {0, 69}}, .dtypes = {DType::f32, DType::i32}}}};

}  // namespace tutti
