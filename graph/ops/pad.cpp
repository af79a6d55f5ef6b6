#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops.h"
//: /// x with `low` elements of `value` before, `high` after and `interior` between neighbours, one entry (>= 0) per
//: /// axis; an empty `interior` means none. To cut off instead, use slice.
//: inline Value pad(Value x, Ints low, Ints high, Ints interior = {}, double value = 0) {
//:   return call(pad_op, {x}, {{"low", std::move(low)}, {"high", std::move(high)}, {"interior", std::move(interior)},
//:       {"value", Reals{value}}});
//: }

namespace tutti {
namespace {

int64_t step_of(const Attrs& a, size_t axis) {
  const Ints& interior = a.ints("interior");
  return interior.empty() ? 1 : interior[axis] + 1;
}

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Ints &low = a.ints("low"), &high = a.ints("high"), &interior = a.ints("interior");
  Shape y = in[0].shape;
  if (low.size() != y.size() || high.size() != y.size() || (!interior.empty() && interior.size() != y.size()))
    throw invalid(fmt::format("low {}, high {}, interior {}: one number for each of the {} axes is needed",
                              to_string(low), to_string(high), to_string(interior), y.size()));
  for (size_t i = 0; i < y.size(); ++i) {
    if (low[i] < 0 || high[i] < 0 || step_of(a, i) < 1)
      throw invalid(fmt::format("low {}, high {}, interior {}: each must be >= 0", to_string(low), to_string(high),
                                to_string(interior)),
                    "cut off with slice()");
    y[i] = low[i] + high[i] + (y[i] == 0 ? 0 : (y[i] - 1) * step_of(a, i) + 1);
  }
  return {{in[0].dtype, y}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  Shape from = strides_of(in[0].shape()), to = strides_of(out[0].shape());
  const Ints& low = a.ints("low");
  for (double& y : out[0].at) y = round_to(out[0].type.dtype, a.f("value"));
  for (size_t i = 0; i < in[0].at.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), k = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      k += (low[d] + rest / from[d] * step_of(a, d)) * to[d];
      rest %= from[d];
    }
    out[0].at[static_cast<size_t>(k)] = in[0].at[i];
  }
}

Values vjp(const Pull& g) {
  const Shape& x = g.in[0].shape();
  Ints starts = g.a.ints("low"), stops, strides;
  for (size_t i = 0; i < x.size(); ++i) {
    strides.push_back(step_of(g.a, i));
    stops.push_back(starts[i] + (x[i] == 0 ? 0 : (x[i] - 1) * strides[i] + 1));
  }
  return {slice(g.d[0], starts, stops, strides)};
}

}  // namespace

const OpDef pad_op{
    .name = "pad",
    .doc =
        "y = x with `low` elements of `value` before, `high` after and `interior` between neighbours, per axis, all >= "
        "0",
    .inputs = {"x"},
    .attrs = {{"low", Ints{}}, {"high", Ints{}}, {"interior", Ints{}}, {"value", Reals{0.0}}},
    .infer = infer,
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
