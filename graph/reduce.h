// What the reduction ops share: attributes, shapes and the walk over elements.
#pragma once
#include "graph/op.h"

namespace tutti {

/// `axes` (all when empty) and `keep` (1: reduced axes stay with size 1).

Attrs reduce_attrs();

/// The type after reducing; dtype as before.
Types infer_reduce(std::span<const TensorType> in, const Attrs& a);
/// Calls visit(element of x, element of the result) for every element of x, in row-major order.
void each_reduced(const Tensor& x, const Attrs& a, const std::function<void(size_t from, size_t to)>& visit);
/// A reduced value repeated back to the shape it was reduced from.
Value unreduce(Value y, const Shape& shape, const Attrs& a);
/// Samples over several axes; `base` gives everything but shapes and attributes.
std::vector<Sample> reduce_samples(const Sample& base);

}  // namespace tutti
