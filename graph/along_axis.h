// What the ops along an axis share: lines walked element by element, flat indices, prefixes.
#pragma once
#include <functional>

#include "core/geometry/index.h"
#include "graph/op.h"

namespace tutti {

/// Calls visit(element of the indexed tensor, element of the index) for every element of the index, in row-major order.
void each_along(const IndexGeometry& g, const Tensor& index, const std::function<void(size_t row, size_t at)>& visit);

/// `index`, clamped, as the i32 positions in the flattened tensor that it indexes along `g.axis`.
Value flat_index(Value index, const IndexGeometry& g);

/// x[starts:stops] of one axis alone.
Value slice_axis(Value x, int64_t axis, int64_t start, int64_t stop);

/// The type of numbers x and of what is folded along its attribute `axis`.
Types infer_scan(std::span<const TensorType> in, const Attrs& a);

/// Every prefix of the axis folded by an associative `combine` of what lies left and right; log2 n rounds of shifts.
Values scan(Values x, int64_t axis, const std::function<Values(const Values& left, const Values& right)>& combine);

}  // namespace tutti
