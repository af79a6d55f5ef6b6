// Shared by the inverse trigonometric ops.
#pragma once
#include "graph/expr.h"

namespace tutti {

/// atan(n / d) in [0, pi/2], for n, d >= 0 that are not both 0 or both infinite: within a rounding error of float64,
/// and within 2.5 ulp in f32 (tests/graph/elementwise_test.cpp sweeps the ops).
Ex angle_of(Ex n, Ex d);
/// y where x > 0, -y where x < 0, x where x is 0.
Ex odd(Ex x, Ex y);

}  // namespace tutti
