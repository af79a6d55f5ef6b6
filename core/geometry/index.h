// Rows along an axis, and what is gathered from and scattered into them.
#pragma once
#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

/// A shape as [outer, size, inner] around one axis.
struct AxisGeometry {
  size_t axis;
  int64_t outer, size, inner;
};
/// `axis` may count from the end; a scalar is one row of one. Throws Error when there is no such axis.
AxisGeometry axis_geometry(const Shape& shape, int64_t axis);

/// Rows of [outer, size, inner] named by `count` indices: those that gather reads or scatter_add adds to.
struct IndexGeometry : AxisGeometry {
  int64_t count;
  Shape result;
};
/// gather: x with the attribute axis replaced by the axes of `index`. Throws Error where they do not fit.
IndexGeometry gather_geometry(const TensorType& x, const TensorType& index, const Attrs& a);
/// scatter_add: the axes of `index` in `updates` replaced by one of the attribute size, which is the result's attribute
/// axis. Throws Error where they do not fit.
IndexGeometry scatter_geometry(const TensorType& index, const TensorType& updates, const Attrs& a);

/// take_along_axis: `index` has the shape of x but for the attribute axis. Throws Error where they do not fit.
IndexGeometry take_along_geometry(const TensorType& x, const TensorType& index, const Attrs& a);
/// add_along_axis: `updates` have the shape of `index`; the result has the attribute size at the attribute axis. Throws
/// Error where they do not fit.
IndexGeometry add_along_geometry(const TensorType& index, const TensorType& updates, const Attrs& a);

}  // namespace tutti
