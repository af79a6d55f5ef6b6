#include "core/geometry/index.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti {
namespace {

void require_i32(const TensorType& index) {
  if (index.dtype != DType::i32)
    throw invalid(fmt::format("the index has dtype {}, expected i32", name(index.dtype)), "cast it");
}

/// `shape` with `count` axes, starting at `axis`, replaced by others.
Shape replaced(const Shape& shape, size_t axis, size_t count, const Shape& by) {
  auto first = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  Shape y(shape.begin(), first);
  y.insert(y.end(), by.begin(), by.end());
  y.insert(y.end(), first + static_cast<std::ptrdiff_t>(count), shape.end());
  return y;
}

}  // namespace

AxisGeometry axis_geometry(const Shape& shape, int64_t axis) {
  auto at = static_cast<size_t>(normalize_axis(axis, shape.size()));
  if (shape.empty()) return {0, 1, 1, 1};
  return {at, num_elements(std::span(shape).first(at)), shape[at], num_elements(std::span(shape).subspan(at + 1))};
}

IndexGeometry gather_geometry(const TensorType& x, const TensorType& index, const Attrs& a) {
  if (x.shape.empty()) throw invalid("x is a scalar, which has no rows", "reshape it to [1]");
  AxisGeometry g = axis_geometry(x.shape, a.i("axis"));
  int64_t count = num_elements(index.shape);
  require_i32(index);
  if (g.size == 0 && count > 0) throw invalid(fmt::format("axis {} of x has no elements", g.axis));
  return {g, count, replaced(x.shape, g.axis, 1, index.shape)};
}

IndexGeometry scatter_geometry(const TensorType& index, const TensorType& updates, const Attrs& a) {
  const Shape &i = index.shape, &u = updates.shape;
  int64_t size = a.i("size"), count = num_elements(i);
  require_i32(index);
  if (u.size() < i.size())
    throw invalid(fmt::format("updates {} have fewer axes than the index {}", to_string(u), to_string(i)));
  auto axis = normalize_axis(a.i("axis"), u.size() + 1 - i.size());
  if (!std::equal(i.begin(), i.end(), u.begin() + axis))
    throw invalid(fmt::format("updates {} must contain the index shape {}, starting at axis {}", to_string(u),
                              to_string(i), axis));
  if (size < 0 || (size == 0 && count > 0)) throw invalid(fmt::format("size {} must be at least 1", size));
  Shape y = replaced(u, static_cast<size_t>(axis), i.size(), {size});
  return {axis_geometry(y, axis), count, y};
}

IndexGeometry take_along_geometry(const TensorType& x, const TensorType& index, const Attrs& a) {
  require_i32(index);
  AxisGeometry g = axis_geometry(x.shape, a.i("axis"));
  Shape y = x.shape;
  if (index.shape.size() == y.size()) y[g.axis] = index.shape[g.axis];
  if (y != index.shape)
    throw invalid(fmt::format("index {} and x {} must have the same shape except along axis {}", to_string(index.shape),
                              to_string(x.shape), g.axis));
  if (g.size == 0 && num_elements(y) > 0) throw invalid(fmt::format("axis {} of x has no elements", g.axis));
  return {g, y[g.axis], y};
}

IndexGeometry add_along_geometry(const TensorType& index, const TensorType& updates, const Attrs& a) {
  require_i32(index);
  if (index.shape != updates.shape)
    throw invalid(fmt::format("updates {} and index {} must have the same shape", to_string(updates.shape),
                              to_string(index.shape)));
  auto axis = static_cast<size_t>(normalize_axis(a.i("axis"), index.shape.size()));
  int64_t size = a.i("size");
  if (size < 0 || (size == 0 && num_elements(index.shape) > 0))
    throw invalid(fmt::format("size {} must be at least 1", size));
  Shape y = index.shape;
  y[axis] = size;
  return {axis_geometry(y, a.i("axis")), index.shape[axis], y};
}

}  // namespace tutti
