// softmax and log_softmax over contiguous rows.
#pragma once
#include <cstdint>

namespace tutti::kernels {

/// Rows of n floats: y = exp(x - m) / s, or x - m - log(s) where `logarithm`; m the row's maximum, s the sum of exp(x -
/// m). Sum, quotient and logarithm are taken in float64: a probability near 1 is then rounded once, which is what its
/// distance from 1, the gradient of a loss, lives on; and no logarithm comes out positive. A NaN makes its row NaN.
void softmax(const float* x, float* y, int64_t rows, int64_t n, bool logarithm, int threads);

}  // namespace tutti::kernels
