#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops.h"
//: /// y = x with `axis` replaced by the axes of `index` (i32, any shape): y[…, i…, …] = x[…, index[i…], …]. An index
//: /// outside [0, size) is clamped: check labels and tokens before they enter the program.
//: inline Value gather(Value x, Value index, int64_t axis = 0) {
//:   return call(gather_op, {x, index}, {{"axis", Ints{axis}}});
//: }

namespace tutti {
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Shape &x = in[0].shape, &index = in[1].shape;
  auto axis = static_cast<size_t>(normalize_axis(a.i("axis"), x.size()));
  if (in[1].dtype != DType::i32) throw invalid(fmt::format("the index is {}, not i32", name(in[1].dtype)), "cast it");
  if (x[axis] == 0 && num_elements(index) > 0) throw invalid(fmt::format("axis {} of x has no elements", axis));
  Shape y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  y.insert(y.end(), index.begin(), index.end());
  y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  return {{in[0].dtype, y}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  const Shape& x = in[0].shape();
  auto axis = static_cast<size_t>(normalize_axis(a.i("axis"), x.size()));
  auto outer = static_cast<size_t>(num_elements(std::span(x).first(axis)));
  auto inner = static_cast<size_t>(num_elements(std::span(x).subspan(axis + 1)));
  auto size = static_cast<size_t>(x[axis]);
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
    .infer = infer,
    .reference = reference,
    .vjp =
        [](const Pull& g) {
          int64_t axis = normalize_axis(g.a.i("axis"), g.in[0].rank());
          return Values{scatter_add(g.in[1], g.d[0], g.in[0].shape()[static_cast<size_t>(axis)], axis), {}};
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
