// Error bounds of device results relative to the float64 reference.
#pragma once
#include <functional>

#include "graph/op.h"

namespace tutti::parity {

/// |error| <= relative * (|reference| + scale) + absolute for every element, where scale is the root mean square of the
/// reference; and the same in the 2-norm with half of `relative`. Both 0: bitwise equality (NaN equals NaN).
struct Bound {
  double relative = 0, absolute = 0;
  bool equal() const { return relative == 0; }
};

/// The bound for a result of type `type` of a graph of `op` (with `gradient`: and its gradient), in ULPs of the least
/// precise float dtype in the graph. It grows with the square root of the longest reduction and is larger for ops with
/// less accurate device functions. Integers, bool and results of exact ops must be equal.
Bound bound_of(const OpDef& op, const Graph& g, DType type, bool gradient);

/// Number of terms of the longest sum for one result element; an estimate from shapes.
double reduction_length(const Graph& g);

struct Difference {
  bool ok = true;
  double share = 0;     ///< largest error divided by the bound; at most 1 if ok; infinite for NaN
  double relative = 0;  ///< largest |error| / (|reference| + scale)
  size_t at = 0;        ///< index of the worst element
  std::string text;     ///< description of the error, "" if ok
};

/// Compares a result with the reference. `conditioning` is called only if the first comparison fails; it returns the
/// root mean square change of the result per unit of relative change of its inputs, which replaces `scale` if it is
/// larger: if terms cancel, the result's magnitude is unrelated to the rounding errors. `terms` (optional) gives the
/// magnitude of the summed terms per element, which is used like |reference|.
Difference compare(const Tensor& got, const Tensor& want, const Bound& bound,
                   const std::function<double()>& conditioning = {}, const Tensor* terms = nullptr);

/// Whether all elements have the same bits; NaN equals NaN. The text of a difference names the first such element.
Difference compare_bits(const Tensor& got, const Tensor& want);

/// |a - b| / max(|b|, least) in the 2-norm; NaN when one holds a NaN.
double norm_error(const Tensor& a, const Tensor& b, double least = 0);

}  // namespace tutti::parity
