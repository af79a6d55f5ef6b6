// softmax and log_softmax.
#pragma once
#include "core/geometry/index.h"

namespace tutti::kernels {

/// Along one axis of floats: y = exp(x - m) / s, or x - m - log(s) where `logarithm`; m the line's maximum, s the sum
/// of exp(x - m). Sum, quotient and logarithm are taken in float64: a probability near 1 is then rounded once, which is
/// what its distance from 1, the gradient of a loss, lives on; and no logarithm comes out positive. A NaN makes its
/// line NaN.
void softmax(const float* x, float* y, const AxisGeometry& g, bool logarithm, int threads);

}  // namespace tutti::kernels
