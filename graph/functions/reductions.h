// Reductions composed of others. Empty `axes` means all; `keep` keeps them with size 1.
#pragma once
#include "core/base/export.h"
#include "graph/ops/logsumexp.h"
#include "graph/ops/mean.h"
#include "graph/ops/prod.h"
#include "graph/ops/sum.h"
#include "graph/ops/var.h"

namespace tutti {

/// With a result dtype other than x's: sums of bool count in i32, means of integers are floats.
TUTTI_API Value sum(Value x, Ints axes, bool keep, DType dtype);
TUTTI_API Value mean(Value x, Ints axes, bool keep, DType dtype);
TUTTI_API Value prod(Value x, Ints axes, bool keep, DType dtype);
/// The sum, ignoring NaN.
TUTTI_API Value nansum(Value x, Ints axes = {}, bool keep = false);

/// x^(1/p) for x >= 0; its gradient is 0 where x is 0, not infinite.
TUTTI_API Value root(Value x, double p = 2);
/// (sum of |x|^p)^(1/p); p = inf: the largest |x|, -inf: the smallest, 0: the number of nonzero elements. For p = inf
/// equal elements share the gradient; where the norm is 0 the gradient is 0.
TUTTI_API Value norm(Value x, double p = 2, Ints axes = {}, bool keep = false);
/// The square root of var (PyTorch's std); its gradient is 0 where var is 0.
TUTTI_API Value stddev(Value x, Ints axes = {}, bool keep = false, int64_t correction = 1);
/// {var, mean}.
TUTTI_API Values var_mean(Value x, Ints axes = {}, bool keep = false, int64_t correction = 1);

/// bool: whether any element, or every element, is nonzero (NaN is nonzero). Over no elements: false, and true.
TUTTI_API Value any(Value x, Ints axes = {}, bool keep = false);
TUTTI_API Value all(Value x, Ints axes = {}, bool keep = false);
/// The number of nonzero elements, in i32.
TUTTI_API Value count_nonzero(Value x, Ints axes = {}, bool keep = false);

/// The i32 index of the smallest element, like argmax: of equal elements the first; NaN counts as the smallest.
TUTTI_API Value argmin(Value x, Ints axes = {}, bool keep = false);
/// {values, indices (i32)} along one axis; of equal elements the first, which gets all of the gradient.
TUTTI_API Values max_with_index(Value x, int64_t axis, bool keep = false);
TUTTI_API Values min_with_index(Value x, int64_t axis, bool keep = false);

}  // namespace tutti
