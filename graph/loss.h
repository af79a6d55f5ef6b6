// Shared by the losses: reduction over the elements.
#pragma once
#include "graph/op.h"

namespace tutti {

/// `reduction` ("mean", "sum" or "none") and the attributes in `more`.
Attrs loss_attrs(Attrs more = {});
/// For losses of x and a target of the same float type. Throws Error naming both types if they differ.
Types infer_loss(std::span<const TensorType> in, const Attrs& a);
/// The type of the reduced loss, given the type of the elements. Throws Error for an unknown reduction.
TensorType reduced_loss(const TensorType& each, const Attrs& a);
/// The mean, the sum, or the unreduced elements.
Value reduce_loss(Value each, const Attrs& a);
/// The cotangent of the elements: that of the loss, divided by the count for "mean". Broadcasts to the elements.
Value pull_loss(const VjpContext& g);
/// Samples of every reduction; `base` gives everything else.
std::vector<Sample> loss_samples(const Sample& base);

}  // namespace tutti
