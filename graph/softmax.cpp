#include "graph/softmax.h"

#include "core/base/status.h"
#include "core/geometry/index.h"

namespace tutti {

Types infer_softmax(std::span<const TensorType> in, const Attrs& a) {
  if (!is_float(in[0].dtype)) throw invalid("x must have a float dtype", "cast it");
  normalize_axis(a.i("axis"), in[0].shape.size());
  return {in[0]};
}

void each_line(const Shape& x, int64_t axis, const std::function<void(size_t, size_t, size_t)>& visit) {
  AxisGeometry g = axis_geometry(x, axis);
  auto size = static_cast<size_t>(g.size), step = static_cast<size_t>(g.inner);
  for (size_t outer = 0; outer < static_cast<size_t>(g.outer) * size * step; outer += size * step)
    for (size_t inner = 0; inner < step; ++inner) visit(outer + inner, step, size);
}

std::vector<Sample> softmax_samples() {
  auto with = [](Shape shape, int64_t axis) {
    return Sample{.shapes = {std::move(shape)}, .low = -3, .high = 3, .attrs = {{"axis", Ints{axis}}}};
  };
  return {with({3, 5}, -1), with({4, 3}, 0),     with({2, 5, 3}, 1), with({7, 1}, -1),
          with({0, 3}, -1), with({33, 130}, -1), with({}, 0)};
}

}  // namespace tutti
