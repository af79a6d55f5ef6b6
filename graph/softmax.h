// Shared by softmax and log_softmax: iteration over the lines along an axis.
#pragma once
#include "graph/op.h"

namespace tutti {

/// Same type as x; throws Error unless x is a float tensor that has the axis.
Types infer_softmax(std::span<const TensorType> in, const Attrs& a);
/// Calls visit(first element, step, size) for every line of x along `axis`.
void each_line(const Shape& x, int64_t axis, const std::function<void(size_t first, size_t step, size_t size)>& visit);
/// Samples over several axes.
std::vector<Sample> softmax_samples();

}  // namespace tutti
