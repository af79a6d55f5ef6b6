// Reductions made of others. `axes` are all when empty; `keep` leaves them with size 1.
#pragma once
#include "core/base/export.h"
#include "graph/ops/logsumexp.h"
#include "graph/ops/mean.h"
#include "graph/ops/prod.h"
#include "graph/ops/sum.h"
#include "graph/ops/var.h"

namespace tutti {

/// In another dtype than x's: sums of bool count in i32, means of integers are floats.
TUTTI_API Value sum(Value x, Ints axes, bool keep, DType dtype);
TUTTI_API Value mean(Value x, Ints axes, bool keep, DType dtype);
TUTTI_API Value prod(Value x, Ints axes, bool keep, DType dtype);
/// The sum of what is not NaN.
TUTTI_API Value nansum(Value x, Ints axes = {}, bool keep = false);

/// x^(1/p) for x >= 0, whose gradient is 0 where x is 0, not infinite.
TUTTI_API Value root(Value x, double p = 2);
/// (sum of |x|^p)^(1/p); p = inf: the largest |x|, -inf: the smallest, 0: how many are not 0. Of p = inf equal elements
/// share the gradient; where the norm is 0 it is 0.
TUTTI_API Value norm(Value x, double p = 2, Ints axes = {}, bool keep = false);
/// The square root of var, PyTorch's std; its gradient is 0 where nothing varies.
TUTTI_API Value stddev(Value x, Ints axes = {}, bool keep = false, int64_t correction = 1);
/// {var, mean}.
TUTTI_API Values var_mean(Value x, Ints axes = {}, bool keep = false, int64_t correction = 1);

/// bool: whether any element, or every one, is not 0 (NaN is not). Over no elements: false, and true.
TUTTI_API Value any(Value x, Ints axes = {}, bool keep = false);
TUTTI_API Value all(Value x, Ints axes = {}, bool keep = false);
/// How many elements are not 0, in i32.
TUTTI_API Value count_nonzero(Value x, Ints axes = {}, bool keep = false);

/// The i32 index of the smallest element, like argmax: the first of equal ones, NaN counts as smallest here.
TUTTI_API Value argmin(Value x, Ints axes = {}, bool keep = false);
/// {values, indices (i32)} along one axis; the first of equal elements, and all of the gradient goes to it.
TUTTI_API Values max_with_index(Value x, int64_t axis, bool keep = false);
TUTTI_API Values min_with_index(Value x, int64_t axis, bool keep = false);

}  // namespace tutti
