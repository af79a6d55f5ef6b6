// What the losses share: the reduction over their elements.
#pragma once
#include "graph/op.h"

namespace tutti {

/// `reduction` ("mean", "sum" or "none") and whatever `more` declares.
Attrs loss_attrs(Attrs more = {});
/// For losses of x and a target of the same float type. Throws Error naming both types where they differ.
Types infer_loss(std::span<const TensorType> in, const Attrs& a);
/// The type of a loss with elements of that type. Throws Error for an unknown reduction.
TensorType reduced_loss(const TensorType& each, const Attrs& a);
/// The mean, the sum, or the elements themselves.
Value reduce_loss(Value each, const Attrs& a);
/// The cotangent of each element: the loss's own, shared out by the reduction. It broadcasts to the elements.
Value pull_loss(const VjpContext& g);
/// Two shapes under each reduction; `base` gives the rest.
std::vector<Sample> loss_samples(const Sample& base);

}  // namespace tutti
