#include "graph/copy.h"
#include "graph/op.h"
#include "graph/ops/slice.h"

namespace tutti {

// public
extern TUTTI_API const OpDef pad_op;
/// x with `low` elements of `value` before, `high` after and `interior` between adjacent elements, one entry (>= 0) per
/// axis; an empty `interior` means none. Use slice for cropping.
inline Value pad(Value x, Ints low, Ints high, Ints interior = {}, double value = 0) {
  return call(
      pad_op, {x},
      {{"low", std::move(low)}, {"high", std::move(high)}, {"interior", std::move(interior)}, {"value", Reals{value}}});
}
// end of public
namespace {

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  std::fill(out[0].at.begin(), out[0].at.end(), round_to(out[0].type.dtype, a.f("value")));
  copy_reference<pad_geometry>(in, out, a);
}

Values vjp(const VjpContext& g) {
  const Shape& x = g.in[0].shape();
  PadGeometry p = pad_geometry(x, g.a);
  Ints stops, strides;
  for (size_t i = 0; i < x.size(); ++i) {
    strides.push_back(p.interior[i] + 1);
    stops.push_back(p.low[i] + (x[i] == 0 ? 0 : (x[i] - 1) * strides[i] + 1));
  }
  return {slice(g.d[0], p.low, stops, strides)};
}

}  // namespace

const OpDef pad_op{
    .name = "pad",
    .doc =
        "y = x with `low` elements of `value` before, `high` after and `interior` between neighbours, per axis, all >= "
        "0",
    .inputs = {"x"},
    .attrs = {{"low", Ints{}}, {"high", Ints{}}, {"interior", Ints{}}, {"value", Reals{0.0}}},
    .ordered = true,
    .infer = infer_copy<pad_geometry>,
    .reference = reference,
    .vjp = vjp,
    .samples = {
        {.shapes = {{2, 3}}, .attrs = {{"low", Ints{1, 0}}, {"high", Ints{2, 1}}}},
        {.shapes = {{2, 3}},
         .attrs = {{"low", Ints{0, 1}}, {"high", Ints{0, 0}}, {"interior", Ints{2, 1}}, {"value", Reals{-1.5}}}},
        {.shapes = {{0, 2}}, .attrs = {{"low", Ints{1, 0}}, {"high", Ints{2, 0}}, {"interior", Ints{3, 1}}}},
        {.shapes = {{}}},
        {.shapes = {{4}},
         .low = -9,
         .high = 9,
         .attrs = {{"low", Ints{1}}, {"high", Ints{1}}, {"value", Reals{7}}},
         .dtypes = {DType::i32}},
        {.shapes = {{65, 40}}, .attrs = {{"low", Ints{3, 1}}, {"high", Ints{0, 2}}, {"interior", Ints{0, 1}}}}}};

}  // namespace tutti
