// What the inverse trigonometric ops share.
#pragma once
#include "graph/expr.h"

namespace tutti {

/// The angle in [0, pi/2] whose tangent is n / d, for n, d >= 0 that are not both 0 or both infinite: good to a
/// rounding error of float64, and of f32 within 2.5 ulp (tests/graph/elementwise_test.cpp sweeps the ops).
Ex angle_of(Ex n, Ex d);
/// y where x > 0, -y where x < 0, x itself where it is 0.
Ex odd(Ex x, Ex y);

}  // namespace tutti
