// Shared by the reduction ops: attributes, shapes and iteration over elements.
#pragma once
#include <functional>

#include "core/geometry/reduction.h"
#include "graph/op.h"

namespace tutti {

/// `axes` (all if empty) and `keep` (1: reduced axes are kept with size 1).
Attrs reduce_attrs();

/// The type after the reduction; the dtype is unchanged.
Types infer_reduce(std::span<const TensorType> in, const Attrs& a);
/// The same; throws Error unless x is a float tensor.
Types infer_float_reduce(std::span<const TensorType> in, const Attrs& a);
/// The same as infer_reduce; throws Error for a reduction over no elements.
Types infer_choice(std::span<const TensorType> in, const Attrs& a);
/// Calls visit(element of x, element of the result) for every element of x, in row-major order.
void each_reduced(const Tensor& x, const Attrs& a, const std::function<void(size_t from, size_t to)>& visit);
/// Broadcasts a reduced value back to the shape before the reduction.
Value unreduce(Value y, const Shape& shape, const Attrs& a);
/// x / n; f16 and bf16 are computed in f32, because n might not be exact in them.
Value divide_by_count(Value x, int64_t n);
/// Gradient of max and min: each result's cotangent is divided equally among the elements equal to it; if one of them
/// is NaN, the gradients of all are NaN.
Values share_among_equals(const VjpContext& g);
/// Samples over several axes; `base` gives everything except shapes and attributes. `empty` adds reductions over no
/// elements.
std::vector<Sample> reduce_samples(const Sample& base, bool empty = false);

}  // namespace tutti
