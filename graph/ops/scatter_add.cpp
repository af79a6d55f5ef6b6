#include <algorithm>

#include "core/geometry/index.h"
#include "graph/op.h"
#include "graph/ops/gather.h"

namespace tutti {

// public
extern TUTTI_API const OpDef scatter_add_op;
/// The adjoint of gather: zeros with size `size` along `axis`, then y[…, index[i…], …] += updates[…, i…, …]. The axes
/// of `index` (i32) are those of `updates` starting at `axis`; a negative `axis` counts from the end of y's axes.
/// Indices outside [0, size) are clamped.
inline Value scatter_add(Value index, Value updates, int64_t size, int64_t axis = 0) {
  return call(scatter_add_op, {index, updates}, {{"size", Ints{size}}, {"axis", Ints{axis}}});
}
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  return {{in[1].dtype, scatter_geometry(in[0], in[1], a).result}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  IndexGeometry g = scatter_geometry(in[0].type, in[1].type, a);
  auto outer = static_cast<size_t>(g.outer), size = static_cast<size_t>(g.size), inner = static_cast<size_t>(g.inner);
  const double* u = in[1].at.data();
  for (size_t o = 0; o < outer; ++o)
    for (double i : in[0].at) {
      auto row = static_cast<size_t>(std::clamp(i, 0.0, static_cast<double>(size) - 1));
      for (size_t k = 0; k < inner; ++k) out[0].at[(o * size + row) * inner + k] += *u++;
    }
}

}  // namespace

const OpDef scatter_add_op{
    .name = "scatter_add",
    .doc =
        "y = zeros of dimension `size` at `axis`; y[…, index[i…], …] += updates[…, i…, …]; i32 index, clamped; "
        "a negative axis counts from the end of y",
    .inputs = {"index", "updates"},
    .attrs = {{"size", Ints{1}}, {"axis", Ints{0}}},
    .ordered = true,
    .infer = infer,
    .reference = reference,
    .vjp =
        [](const VjpContext& g) {
          return Values{{}, gather(g.d[0], g.in[0], g.a.i("axis"))};
        },
    .samples = {
        {.shapes = {{4}, {4, 3}}, .attrs = {{"size", Ints{5}}}, .ranges = {{0, 4}}, .dtypes = {DType::i32}},
        {.shapes = {{2, 3}, {2, 2, 3, 4}},
         .attrs = {{"size", Ints{3}}, {"axis", Ints{1}}},
         .ranges = {{0, 2}},
         .dtypes = {DType::i32}},
        {.shapes = {{4}, {2, 4}},
         .attrs = {{"size", Ints{5}}, {"axis", Ints{-1}}},
         .ranges = {{0, 4}},
         .dtypes = {DType::i32}},
        {.shapes = {{}, {3}},
         .attrs = {{"size", Ints{4}}, {"axis", Ints{1}}},
         .ranges = {{0, 3}},
         .dtypes = {DType::i32}},
        {.shapes = {{9}, {9, 2}}, .attrs = {{"size", Ints{4}}}, .ranges = {{-3, 8}}, .dtypes = {DType::i32}},
        {.shapes = {{0}, {0, 2}}, .attrs = {{"size", Ints{4}}}, .dtypes = {DType::i32}},
        {.shapes = {{129}, {129, 65}}, .attrs = {{"size", Ints{70}}}, .ranges = {{0, 69}}, .dtypes = {DType::i32}}}};

}  // namespace tutti
