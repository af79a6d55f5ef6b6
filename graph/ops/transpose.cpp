#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops.h"
//: /// Axis i of y is axis perm[i] of x; perm names every axis once (negative: from the end).
//: inline Value transpose(Value x, Ints perm) { return call(transpose_op, {x}, {{"perm", std::move(perm)}}); }

namespace tutti {
namespace {

Ints order(const Shape& shape, const Attrs& a) {
  Ints perm = a.ints("perm");
  if (perm.size() != shape.size() || (!perm.empty() && normalize_axes(perm, shape.size()).size() != shape.size()))
    throw invalid(fmt::format("perm {} does not name each of the {} axes once", to_string(perm), shape.size()));
  for (int64_t& axis : perm) axis = normalize_axis(axis, shape.size());
  return perm;
}

Types infer(std::span<const TensorType> in, const Attrs& a) {
  Shape y;
  for (int64_t axis : order(in[0].shape, a)) y.push_back(in[0].shape[static_cast<size_t>(axis)]);
  return {{in[0].dtype, y}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  Shape from = strides_of(in[0].shape()), to = strides_of(out[0].shape());
  Ints perm = order(in[0].shape(), a);
  for (size_t i = 0; i < out[0].at.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), k = 0;
    for (size_t d = 0; d < to.size(); ++d) {
      k += rest / to[d] * from[static_cast<size_t>(perm[d])];
      rest %= to[d];
    }
    out[0].at[i] = in[0].at[static_cast<size_t>(k)];
  }
}

Values vjp(const Pull& g) {
  Ints perm = order(g.in[0].shape(), g.a), back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return {transpose(g.d[0], back)};
}

}  // namespace

const OpDef transpose_op{
    .name = "transpose",
    .doc = "axis i of y is axis perm[i] of x",
    .inputs = {"x"},
    .attrs = {{"perm", Ints{}}},
    .infer = infer,
    .reference = reference,
    .vjp = vjp,
    .samples = {{.shapes = {{3, 5}}, .attrs = {{"perm", Ints{1, 0}}}},
                {.shapes = {{2, 3, 4}}, .attrs = {{"perm", Ints{2, 0, 1}}}},
                {.shapes = {{2, 3, 1, 4}}, .attrs = {{"perm", Ints{0, -1, 1, 2}}}},
                {.shapes = {{}}},
                {.shapes = {{0, 3}}, .attrs = {{"perm", Ints{1, 0}}}},
                {.shapes = {{4, 3}}, .low = -9, .high = 9, .attrs = {{"perm", Ints{1, 0}}}, .dtypes = {DType::i32}},
                {.shapes = {{129, 67}}, .attrs = {{"perm", Ints{1, 0}}}}}};

}  // namespace tutti
