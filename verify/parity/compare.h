// How far a device's result may be from the float64 reference.
#pragma once
#include <functional>

#include "graph/op.h"

namespace tutti::parity {

/// |error| <= relative * (|reference| + scale) + absolute for every element, where scale is the root mean square of
/// the reference; and the same with half of `relative` in the 2-norm. Both 0: equal bits (NaN equals NaN).
struct Bound {
  double relative = 0, absolute = 0;
  bool equal() const { return relative == 0; }
};

/// The bound for a result of type `type` of a graph made of `op` (and, with `gradient`, of its gradient): units in the
/// last place of the coarsest float dtype in the graph, growing with the root of the longest reduction, more for ops
/// whose devices' functions are less exact. Integers, bool and results of exact ops must be equal.
Bound bound_of(const OpDef& op, const Graph& g, DType type, bool gradient);

/// The longest sum that one result element of a graph may be; an estimate from shapes.
double reduction_length(const Graph& g);

struct Difference {
  bool ok = true;
  double share = 0;     ///< the worst error as a share of what is allowed; at most 1 when ok; infinite for NaN
  double relative = 0;  ///< the worst |error| / (|reference| + scale)
  size_t at = 0;        ///< the worst element
  std::string text;     ///< what is wrong, "" when ok
};

/// Compares. `conditioning`, asked only when the first judgement fails, gives the root mean square change of the result
/// per unit of relative change of what it is computed from: where terms cancel, the size of the result says nothing
/// about the roundings that led to it, and `scale` becomes this. `terms`, where given, tells it per element: the size
/// of a term of the sum that the element is, which then counts like |reference|.
Difference compare(const Tensor& got, const Tensor& want, const Bound& bound,
                   const std::function<double()>& conditioning = {}, const Tensor* terms = nullptr);

/// |a - b| / max(|b|, least) in the 2-norm; NaN when one holds a NaN.
double norm_error(const Tensor& a, const Tensor& b, double least = 0);

}  // namespace tutti::parity
