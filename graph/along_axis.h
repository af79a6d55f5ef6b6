// Shared by ops along an axis: iteration, flat indices, scans.
#pragma once
#include <functional>

#include "core/geometry/index.h"
#include "graph/op.h"

namespace tutti {

/// Calls visit(element of the indexed tensor, element of the index) for every element of the index, in row-major order.
void each_along(const IndexGeometry& g, const Tensor& index, const std::function<void(size_t row, size_t at)>& visit);

/// `index`, clamped, as i32 positions in the flattened tensor that it indexes along `g.axis`.
Value flat_index(Value index, const IndexGeometry& g);

/// x[start:stop] along one axis.
Value slice_axis(Value x, int64_t axis, int64_t start, int64_t stop);

/// Result types of a scan over numbers x along the attribute `axis`.
Types infer_scan(std::span<const TensorType> in, const Attrs& a);

/// Inclusive scan along the axis with an associative `combine(left, right)`, in log2 n rounds of shifts.
Values scan(Values x, int64_t axis, const std::function<Values(const Values& left, const Values& right)>& combine);

}  // namespace tutti
