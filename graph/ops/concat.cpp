#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops.h"
//: /// The tensors one after the other along `axis`; the other dimensions and the dtype agree. At least one.
//: inline Value concat(const Values& x, int64_t axis) { return call(concat_op, x, {{"axis", Ints{axis}}}); }

namespace tutti {
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  if (in.empty()) throw invalid("at least one input is needed");
  Shape y = in[0].shape;
  auto axis = static_cast<size_t>(normalize_axis(a.i("axis"), y.size()));
  for (size_t k = 1; k < in.size(); ++k) {
    Shape s = in[k].shape;
    bool fits = s.size() == y.size() && in[k].dtype == in[0].dtype;
    for (size_t d = 0; fits && d < s.size(); ++d) fits = d == axis || s[d] == y[d];
    if (!fits)
      throw invalid(fmt::format("input {} is {}, the first {}: only axis {} may differ", k, to_string(in[k]),
                                to_string(in[0]), axis));
    y[axis] += s[axis];
  }
  return {{in[0].dtype, y}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  const Shape& y = out[0].shape();
  auto axis = static_cast<size_t>(normalize_axis(a.i("axis"), y.size()));
  size_t outer = 1, row = 1, offset = 0;
  for (size_t d = 0; d < y.size(); ++d) (d < axis ? outer : row) *= static_cast<size_t>(y[d]);
  for (const Tensor& x : in) {
    size_t part = outer == 0 ? 0 : x.at.size() / outer;
    for (size_t o = 0; o < outer; ++o) std::copy_n(x.at.data() + o * part, part, out[0].at.data() + o * row + offset);
    offset += part;
  }
}

Values vjp(const Pull& g) {
  const Shape& y = g.out[0].shape();
  auto axis = static_cast<size_t>(normalize_axis(g.a.i("axis"), y.size()));
  Values back;
  Ints starts(y.size()), stops = y;
  for (size_t k = 0; k < g.in.size(); ++k) {
    stops[axis] = starts[axis] + g.in[k].shape()[axis];
    back.push_back(g.wants[k] ? slice(g.d[0], starts, stops) : Value{});
    starts[axis] = stops[axis];
  }
  return back;
}

}  // namespace

const OpDef concat_op{
    .name = "concat",
    .doc = "y = the inputs one after the other along `axis`; the other dimensions and the dtype agree",
    .inputs = {"x..."},
    .attrs = {{"axis", Ints{0}}},
    .infer = infer,
    .reference = reference,
    .vjp = vjp,
    .samples = {{.shapes = {{2, 3}, {4, 3}}},
                {.shapes = {{2, 3, 2}, {2, 1, 2}, {2, 0, 2}, {2, 4, 2}}, .attrs = {{"axis", Ints{1}}}},
                {.shapes = {{3, 2}, {3, 5}}, .attrs = {{"axis", Ints{-1}}}},
                {.shapes = {{7}}},
                {.shapes = {{3}, {2}}, .low = -9, .high = 9, .dtypes = {DType::i32, DType::i32}},
                {.shapes = {{65, 33}, {65, 70}}, .attrs = {{"axis", Ints{1}}}}}};

}  // namespace tutti
