// softmax and log_softmax.
#pragma once
#include "core/geometry/index.h"

namespace tutti::kernels {

/// Along one axis of floats: y = exp(x - m) / s, or x - m - log(s) if `logarithm`, with the line's maximum m and s =
/// sum of exp(x - m). Sum, quotient and logarithm are computed in float64: a probability near 1 is then rounded once,
/// so that its difference to 1 (the gradient of a loss) is accurate, and no logarithm is positive. A NaN makes the
/// whole line NaN.
void softmax(const float* x, float* y, const AxisGeometry& g, bool logarithm, int threads);

}  // namespace tutti::kernels
