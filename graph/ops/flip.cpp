#include "core/geometry/index.h"
#include "graph/op.h"
#include "graph/ops/gather.h"
#include "graph/ops/iota.h"
#include "graph/ops/sub.h"

namespace tutti {

// public
extern TUTTI_API const OpDef flip_op;
/// Reverses the order of elements along these axes.
inline Value flip(Value x, Ints axes) { return call(flip_op, {x}, {{"axes", std::move(axes)}}); }
// end of public
namespace {

/// Normalized, unique axes; an empty list stays empty.
Ints axes_of(const Shape& x, const Attrs& a) {
  const Ints& axes = a.ints("axes");
  return axes.empty() ? Ints{} : normalize_axes(axes, x.size());
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  const Shape& shape = in[0].shape();
  out[0].at = in[0].at;
  for (int64_t axis : axes_of(shape, a)) {
    AxisGeometry g = axis_geometry(shape, axis);
    for (int64_t o = 0; o < g.outer; ++o)
      for (int64_t i = 0; 2 * i + 1 < g.size; ++i) {
        double* row = out[0].at.data() + (o * g.size + i) * g.inner;
        std::swap_ranges(row, row + g.inner, row + (g.size - 1 - 2 * i) * g.inner);
      }
  }
}

}  // namespace

const OpDef flip_op{.name = "flip",
                    .doc = "y = x with the order along each of `axes` reversed",
                    .inputs = {"x"},
                    .attrs = {{"axes", Ints{}}},
                    .infer =
                        [](std::span<const TensorType> in, const Attrs& a) {
                          axes_of(in[0].shape, a);
                          return Types{in[0]};
                        },
                    .reference = reference,
                    .decompose =
                        [](const Call& c) {
                          Value y = c.in[0];
                          for (int64_t axis : axes_of(y.shape(), c.a)) {
                            int64_t n = y.shape()[static_cast<size_t>(axis)];
                            y = gather(y, static_cast<double>(n - 1) - iota(c.graph, {n}), axis);
                          }
                          return Values{y};
                        },
                    .vjp = [](const VjpContext& g) { return Values{flip(g.d[0], g.a.ints("axes"))}; },
                    .samples = {{.shapes = {{7}}, .attrs = {{"axes", Ints{0}}}},
                                {.shapes = {{2, 3, 4}}, .attrs = {{"axes", Ints{-1, 0}}}},
                                {.shapes = {{3, 0}}, .attrs = {{"axes", Ints{1}}}},
                                {.shapes = {{5, 1, 3}}, .attrs = {{"axes", Ints{1}}}}}};

}  // namespace tutti
