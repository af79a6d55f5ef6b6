#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops.h"
//: /// x[starts:stops:strides] as in NumPy, one entry per axis: negative counts from the end, what lies outside is cut
//: /// off. Strides are >= 1, all 1 when empty.
//: inline Value slice(Value x, Ints starts, Ints stops, Ints strides = {}) {
//:   return call(slice_op, {x}, {{"starts", std::move(starts)}, {"stops", std::move(stops)}, {"strides",
//:       std::move(strides)}});
//: }

namespace tutti {
namespace {

struct Axis {
  int64_t start, stride, count;
};

std::vector<Axis> axes_of(const Shape& shape, const Attrs& a) {
  const Ints &starts = a.ints("starts"), &stops = a.ints("stops"), &strides = a.ints("strides");
  if (starts.size() != shape.size() || stops.size() != shape.size() ||
      (!strides.empty() && strides.size() != shape.size()))
    throw invalid(fmt::format("starts {}, stops {}, strides {}: one number for each of the {} axes is needed",
                              to_string(starts), to_string(stops), to_string(strides), shape.size()));
  std::vector<Axis> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t n = shape[i], stride = strides.empty() ? 1 : strides[i];
    if (stride < 1) throw invalid(fmt::format("strides {}: each must be >= 1", to_string(strides)));
    auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n); };
    int64_t start = within(starts[i]), length = std::max<int64_t>(0, within(stops[i]) - start);
    axes.push_back({start, stride, length == 0 ? 0 : (length - 1) / stride + 1});
  }
  return axes;
}

Types infer(std::span<const TensorType> in, const Attrs& a) {
  Shape y;
  for (const Axis& axis : axes_of(in[0].shape, a)) y.push_back(axis.count);
  return {{in[0].dtype, y}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  std::vector<Axis> axes = axes_of(in[0].shape(), a);
  Shape from = strides_of(in[0].shape()), to = strides_of(out[0].shape());
  for (size_t i = 0; i < out[0].at.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), k = 0;
    for (size_t d = 0; d < to.size(); ++d) {
      k += (axes[d].start + rest / to[d] * axes[d].stride) * from[d];
      rest %= to[d];
    }
    out[0].at[i] = in[0].at[static_cast<size_t>(k)];
  }
}

Values vjp(const Pull& g) {
  const Shape& shape = g.in[0].shape();
  std::vector<Axis> axes = axes_of(shape, g.a);
  Ints low, high, interior;
  for (size_t i = 0; i < axes.size(); ++i) {
    low.push_back(axes[i].start);
    interior.push_back(axes[i].stride - 1);
    int64_t covered = axes[i].count == 0 ? 0 : (axes[i].count - 1) * axes[i].stride + 1;
    high.push_back(shape[i] - axes[i].start - covered);
  }
  return {pad(g.d[0], low, high, interior, 0)};
}

}  // namespace

const OpDef slice_op{
    .name = "slice",
    .doc = "y = x[starts:stops:strides] as in NumPy, one entry per axis; strides >= 1, all 1 when empty",
    .inputs = {"x"},
    .attrs = {{"starts", Ints{}}, {"stops", Ints{}}, {"strides", Ints{}}},
    .infer = infer,
    .reference = reference,
    .vjp = vjp,
    .samples = {
        {.shapes = {{5, 7}}, .attrs = {{"starts", Ints{1, 2}}, {"stops", Ints{4, 7}}}},
        {.shapes = {{5, 7}}, .attrs = {{"starts", Ints{-4, 0}}, {"stops", Ints{-1, 99}}, {"strides", Ints{2, 3}}}},
        {.shapes = {{2, 3, 4}}, .attrs = {{"starts", Ints{0, 1, 0}}, {"stops", Ints{2, 1, 4}}}},
        {.shapes = {{}}},
        {.shapes = {{9}},
         .low = -9,
         .high = 9,
         .attrs = {{"starts", Ints{1}}, {"stops", Ints{8}}, {"strides", Ints{2}}},
         .dtypes = {DType::i32}},
        {.shapes = {{200, 129}},
         .attrs = {{"starts", Ints{3, 1}}, {"stops", Ints{190, 128}}, {"strides", Ints{1, 2}}}}}};

}  // namespace tutti
