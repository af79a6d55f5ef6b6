#include "graph/functions/reductions.h"

#include <cmath>

#include "graph/in_f32.h"
#include "graph/ops/abs.h"
#include "graph/ops/argmax.h"
#include "graph/ops/cast.h"
#include "graph/ops/equal.h"
#include "graph/ops/logical_not.h"
#include "graph/ops/max.h"
#include "graph/ops/min.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/pow.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sub.h"
#include "graph/ops/take_along_axis.h"

namespace tutti {
namespace {

/// Casts f16 and bf16 to f32.
Value widened(Value x) { return holds_narrow(x) ? cast(x, DType::f32) : x; }

/// x^p; value and gradient are 0 where x is 0.
Value power(Value x, double p) {
  Value zero = equal(x, x.like(0)), some = select(zero, x.like(1), x);
  return select(zero, x.like(0), p == 0.5 ? sqrt(some) : pow(some, some.like(p)));
}

/// Reverses the order: negation, without overflow for integers.
Value reversed(Value x) {
  if (is_float(x.dtype())) return -x;
  return x.like(x.dtype() == DType::u32 ? 4294967295.0 : x.dtype() == DType::u8 ? 255.0 : -1.0) - x;
}

Values chosen(Value x, Value index, int64_t axis, bool keep) {
  Value y = take_along_axis(x, index, axis);
  if (keep) return {y, index};
  Shape shape = x.shape();
  shape.erase(shape.begin() + normalize_axis(axis, shape.size()));
  return {reshape(y, shape), reshape(index, shape)};
}

}  // namespace

Value sum(Value x, Ints axes, bool keep, DType dtype) { return sum(cast(x, dtype), std::move(axes), keep); }
Value mean(Value x, Ints axes, bool keep, DType dtype) { return mean(cast(x, dtype), std::move(axes), keep); }
Value prod(Value x, Ints axes, bool keep, DType dtype) { return prod(cast(x, dtype), std::move(axes), keep); }

Value nansum(Value x, Ints axes, bool keep) { return sum(select(equal(x, x), x, x.like(0)), std::move(axes), keep); }

Value root(Value x, double p) { return power(x, 1 / p); }

Value norm(Value x, double p, Ints axes, bool keep) {
  Value wide = widened(x), size = abs(wide), y;
  if (std::isinf(p))
    y = p > 0 ? max(size, axes, keep) : min(size, axes, keep);
  else if (p == 0)
    y = cast(count_nonzero(size, axes, keep), size.dtype());
  else if (p == 1)
    y = sum(size, axes, keep);
  else if (p == 2)
    y = root(sum(wide * wide, axes, keep));
  else {
    y = root(sum(power(size, p), axes, keep), p);
    if (p < 0) y = select(any(equal(size, size.like(0)), axes, keep), y.like(0), y);  // 0 if any element is 0
  }
  return cast(y, x.dtype());
}

Value stddev(Value x, Ints axes, bool keep, int64_t correction) {
  return cast(root(var(widened(x), std::move(axes), keep, correction)), x.dtype());
}

Values var_mean(Value x, Ints axes, bool keep, int64_t correction) {
  return {var(x, axes, keep, correction), mean(x, axes, keep)};
}

Value count_nonzero(Value x, Ints axes, bool keep) {
  return sum(cast(x, DType::boolean), std::move(axes), keep, DType::i32);
}

Value any(Value x, Ints axes, bool keep) { return cast(count_nonzero(x, std::move(axes), keep), DType::boolean); }

Value all(Value x, Ints axes, bool keep) {
  return logical_not(any(logical_not(cast(x, DType::boolean)), std::move(axes), keep));
}

Value argmin(Value x, Ints axes, bool keep) { return argmax(reversed(x), std::move(axes), keep); }

Values max_with_index(Value x, int64_t axis, bool keep) { return chosen(x, argmax(x, {axis}, true), axis, keep); }
Values min_with_index(Value x, int64_t axis, bool keep) { return chosen(x, argmin(x, {axis}, true), axis, keep); }

}  // namespace tutti
