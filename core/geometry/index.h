// Geometry of gather and scatter ops along an axis.
#pragma once
#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

/// A shape as [outer, size, inner] around one axis.
struct AxisGeometry {
  size_t axis;
  int64_t outer, size, inner;
};
/// `axis` may be negative; a scalar counts as shape [1]. Throws Error if the axis is out of range.
AxisGeometry axis_geometry(const Shape& shape, int64_t axis);

/// Rows of [outer, size, inner] selected by `count` indices: those that gather reads or scatter_add adds to.
struct IndexGeometry : AxisGeometry {
  int64_t count;
  Shape result;
};
/// gather: x with the attribute axis replaced by the axes of `index`. Throws Error if the types do not match.
IndexGeometry gather_geometry(const TensorType& x, const TensorType& index, const Attrs& a);
/// scatter_add: the axes of `index` in `updates` are replaced by one axis, the result's attribute axis, of the
/// attribute size. Throws Error if the types do not match.
IndexGeometry scatter_geometry(const TensorType& index, const TensorType& updates, const Attrs& a);

/// take_along_axis: `index` has the shape of x except along the attribute axis. Throws Error if the types do not match.
IndexGeometry take_along_geometry(const TensorType& x, const TensorType& index, const Attrs& a);
/// add_along_axis: `updates` has the shape of `index`; the result has the attribute size along the attribute axis.
/// Throws Error if the types do not match.
IndexGeometry add_along_geometry(const TensorType& index, const TensorType& updates, const Attrs& a);

}  // namespace tutti
