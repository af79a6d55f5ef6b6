// Elementwise functions and activations, named as in PyTorch. f16 and bf16 are computed in f32 and rounded once.
#pragma once
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

// ---- rounding; the gradients are 0

/// The smallest integer >= x.
TUTTI_API Value ceil(Value x);
/// The nearest integer; halves round to even.
TUTTI_API Value round(Value x);
/// Rounds toward 0.
TUTTI_API Value trunc(Value x);
/// a / b rounded to an integer: "trunc" (toward 0) or "floor" (Python's //). For integer dtypes exact; division by 0
/// gives 0; the smallest integer divided by -1 wraps to itself.
TUTTI_API Value div(Value a, Value b, const std::string& rounding);

// ---- powers and logarithms

TUTTI_API Value reciprocal(Value x);
TUTTI_API Value square(Value x);
/// 2^x, as accurate as the device's pow.
TUTTI_API Value exp2(Value x);
/// The logarithm to base 2: ln x / ln 2, in f32 within 2 ulp.
TUTTI_API Value log2(Value x);
/// The logarithm to base 10: ln x / ln 10, in f32 within 2 ulp.
TUTTI_API Value log10(Value x);

// ---- inverse hyperbolic functions

/// Inverse of sinh.
TUTTI_API Value asinh(Value x);
/// Inverse of cosh, >= 0; NaN where x < 1.
TUTTI_API Value acosh(Value x);
/// Inverse of tanh; infinite where |x| = 1, NaN where |x| > 1.
TUTTI_API Value atanh(Value x);

// ---- predicates; bool

TUTTI_API Value isnan(Value x);
TUTTI_API Value isinf(Value x);
TUTTI_API Value isfinite(Value x);
TUTTI_API Value not_equal(Value a, Value b);
TUTTI_API Value greater(Value a, Value b);
TUTTI_API Value greater_equal(Value a, Value b);
/// a where the condition holds, else b: `select` under NumPy's name, also with scalars.
TUTTI_API Value where(Value condition, Value a, Value b);
TUTTI_API Value where(Value condition, Value a, double b);
TUTTI_API Value where(Value condition, double a, Value b);

// ---- activations

/// x limited to [0, 6].
TUTTI_API Value relu6(Value x);
/// relu6(x + 3) / 6
TUTTI_API Value hardsigmoid(Value x);
/// x relu6(x + 3) / 6
TUTTI_API Value hardswish(Value x);
/// x tanh(ln(1 + e^x))
TUTTI_API Value mish(Value x);
/// x where x > 0, else weight x; the weight has one element, or one per channel (axis 1).
TUTTI_API Value prelu(Value x, Value weight);
/// scale (x where x > 0, else alpha (e^x - 1)) with the constants of Klambauer et al. 2017.
TUTTI_API Value selu(Value x);
/// x where x > 0, else alpha (e^(x / alpha) - 1); alpha > 0
TUTTI_API Value celu(Value x, double alpha = 1);
/// ln(1 / (1 + e^-x)), without overflow
TUTTI_API Value logsigmoid(Value x);
/// x / (1 + |x|)
TUTTI_API Value softsign(Value x);
/// x - tanh x
TUTTI_API Value tanhshrink(Value x);

// Gated units: an axis of even size is split into halves a and b.

/// a sigmoid(b) (Dauphin et al. 2017)
TUTTI_API Value glu(Value x, int64_t axis = -1);
/// silu(a) b (Shazeer 2020): unlike in glu, the gate is the first half.
TUTTI_API Value swiglu(Value x, int64_t axis = -1);
/// gelu(a) b (Shazeer 2020)
TUTTI_API Value geglu(Value x, int64_t axis = -1, const std::string& approximate = "none");

}  // namespace tutti
