// What the reduction ops share: attributes, shapes and the walk over elements.
#pragma once
#include "core/geometry/reduction.h"
#include "graph/op.h"

namespace tutti {

/// `axes` (all when empty) and `keep` (1: reduced axes stay with size 1).
Attrs reduce_attrs();

/// The type after reducing; dtype as before.
Types infer_reduce(std::span<const TensorType> in, const Attrs& a);
/// The same; throws Error unless x holds floats.
Types infer_float_reduce(std::span<const TensorType> in, const Attrs& a);
/// The same as infer_reduce; throws Error when an element of the result would be reduced from nothing.
Types infer_choice(std::span<const TensorType> in, const Attrs& a);
/// Calls visit(element of x, element of the result) for every element of x, in row-major order.
void each_reduced(const Tensor& x, const Attrs& a, const std::function<void(size_t from, size_t to)>& visit);
/// A reduced value repeated back to the shape it was reduced from.
Value unreduce(Value y, const Shape& shape, const Attrs& a);
/// x / n; f16 and bf16 go through f32, because n would be rounded to them.
Value divide_by_count(Value x, int64_t n);
/// Gradient of max and min: each result's cotangent is shared equally by the elements that equal it; NaN for
/// all where one is NaN.
Values share_among_equals(const VjpContext& g);
/// Samples over several axes; `base` gives everything but shapes and attributes. `empty` adds reductions of nothing.
std::vector<Sample> reduce_samples(const Sample& base, bool empty = false);

}  // namespace tutti
