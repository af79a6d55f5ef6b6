#include "graph/functions/elementwise.h"

#include <fmt/format.h>

#include <limits>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/in_f32.h"
#include "graph/ops/abs.h"
#include "graph/ops/elu.h"
#include "graph/ops/equal.h"
#include "graph/ops/floor.h"
#include "graph/ops/fmod.h"
#include "graph/ops/gelu.h"
#include "graph/ops/hardtanh.h"
#include "graph/ops/log.h"
#include "graph/ops/log1p.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/logical_not.h"
#include "graph/ops/logical_or.h"
#include "graph/ops/remainder.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sigmoid.h"
#include "graph/ops/silu.h"
#include "graph/ops/softplus.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/tanh.h"

namespace tutti {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ln_2 = 0.69314718055994531;
constexpr double no_square = 1e8;  // beyond this the 1 in x^2 + 1 is lost, and in f32 x^2 may overflow

std::pair<Value, Value> halves(const char* what, Value x, int64_t axis) {
  auto at = static_cast<size_t>(normalize_axis(axis, x.rank()));
  if (x.rank() == 0 || x.shape()[at] % 2 != 0)
    throw invalid(fmt::format("{}: axis {} of {} must have an even size", what, axis, to_string(x.shape())),
                  "use an axis of even size");
  Values parts = split(x, Ints{x.shape()[at] / 2, x.shape()[at] / 2}, static_cast<int64_t>(at));
  return {parts[0], parts[1]};
}

bool is_unsigned(DType t) { return t == DType::u8 || t == DType::u32 || t == DType::boolean; }

/// For integers, bool: whether the floored and the truncated quotient differ. No intermediate result wraps.
Value apart(Value a, Value b) { return logical_and(not_equal(a < 0, b < 0), not_equal(remainder(a, b), a.like(0))); }

/// floor(a / b) for floats, computed from the exact remainder, because a / b may round up to an integer.
Value floored(Value a, Value b) {
  Value r = fmod(a, b), q = (a - r) / b;
  q = select(logical_and(not_equal(r, r.like(0)), not_equal(r < 0, b < 0)), q - 1, q);
  Value low = floor(q), plain = a / b;
  low = select(q - low > 0.5, low + 1, low);
  low = select(equal(q, q.like(0)), plain * 0, low);  // with the sign of a / b
  return select(equal(b, b.like(0)), plain, low);
}

}  // namespace

Value ceil(Value x) { return is_float(x.dtype()) ? -floor(-x) : x; }

Value round(Value x) {
  if (!is_float(x.dtype())) return x;
  Value low = floor(x), part = x - low;
  Value odd = not_equal(low, floor(low * 0.5) * 2);
  return select(logical_or(part > 0.5, logical_and(equal(part, x.like(0.5)), odd)), low + 1, low);
}

Value trunc(Value x) { return is_float(x.dtype()) ? select(x < 0, ceil(x), floor(x)) : x; }

Value div(Value a, Value b, const std::string& rounding) {
  if (rounding != "trunc" && rounding != "floor")
    throw invalid(fmt::format("div: unknown rounding mode '{}'", rounding), "use 'trunc' or 'floor'");
  if (is_float(a.dtype()))
    return rounded_once(
        {a, b}, [&](const Values& v) { return rounding == "floor" ? floored(v[0], v[1]) : trunc(v[0] / v[1]); });
  Value q = a / b;
  return rounding == "trunc" || is_unsigned(a.dtype())
             ? q
             : select(logical_and(apart(a, b), not_equal(b, b.like(0))), q - 1, q);
}

Value reciprocal(Value x) { return 1 / x; }
Value square(Value x) { return x * x; }
Value exp2(Value x) { return pow(2, x); }

Value log2(Value x) {
  return rounded_once(x, [](Value v) { return log(v) * 1.4426950408889634; });
}

Value log10(Value x) {
  return rounded_once(x, [](Value v) { return log(v) * 0.43429448190325183; });
}

Value asinh(Value x) {
  return rounded_once(x, [](Value v) {
    // not |x| or the sign of x: their gradients are 0 at x = 0
    Value negative = v<0, size = select(negative, -v, v), far = size> no_square;
    Value near = where(far, 1, size), squares = near * near;
    Value y = where(far, log(where(far, size, 1)) + ln_2, log1p(near + squares / (1 + sqrt(squares + 1))));
    return select(negative, -y, y);
  });
}

Value acosh(Value x) {
  return rounded_once(x, [](Value v) {
    Value far = v > no_square, near = where(far, 2, v);
    return where(far, log(where(far, v, 1)) + ln_2, log(near + sqrt(near - 1) * sqrt(near + 1)));
  });
}

Value atanh(Value x) {
  return rounded_once(x, [](Value v) { return (log1p(v) - log1p(-v)) * 0.5; });
}

Value isnan(Value x) { return not_equal(x, x); }
Value isinf(Value x) { return is_float(x.dtype()) ? equal(abs(x), x.like(infinity)) : not_equal(x, x); }
Value isfinite(Value x) { return is_float(x.dtype()) ? abs(x) < infinity : equal(x, x); }
Value not_equal(Value a, Value b) { return logical_not(equal(a, b)); }
Value greater(Value a, Value b) { return a > b; }
Value greater_equal(Value a, Value b) { return a >= b; }
Value where(Value condition, Value a, Value b) { return select(condition, a, b); }
Value where(Value condition, Value a, double b) { return select(condition, a, a.like(b)); }
Value where(Value condition, double a, Value b) { return select(condition, b.like(a), b); }

Value relu6(Value x) { return hardtanh(x, 0, 6); }

Value hardsigmoid(Value x) {
  return rounded_once(x, [](Value v) { return relu6(v + 3) / 6; });
}

Value hardswish(Value x) {
  return rounded_once(x, [](Value v) { return v * hardsigmoid(v); });
}

Value mish(Value x) {
  return rounded_once(x, [](Value v) { return v * tanh(softplus(v)); });
}

Value prelu(Value x, Value weight) {
  Shape channels;
  if (num_elements(weight.shape()) != 1) {
    if (x.rank() < 2 || weight.shape() != Shape{x.shape()[1]})
      throw invalid(
          fmt::format("prelu: weight {} does not match x {}", to_string(weight.shape()), to_string(x.shape())),
          "use a weight of one element, or one per channel (axis 1)");
    channels.assign(x.rank() - 1, 1);
    channels[0] = x.shape()[1];
  }
  return rounded_once({x, reshape(weight, channels)}, [](const Values& v) {
    Value positive = v[0] > 0;  // separate selects: 0 * infinity must not reach the weight's gradient
    return select(positive, v[0], v[1] * where(positive, 0, v[0]));
  });
}

Value selu(Value x) {
  return rounded_once(x, [](Value v) { return elu(v, 1.6732632423543772) * 1.0507009873554805; });
}

Value celu(Value x, double alpha) {
  if (!(alpha > 0)) throw invalid(fmt::format("celu: alpha is {}, must be above 0", alpha));
  return rounded_once(x, [&](Value v) { return select(v > 0, v, elu(v / alpha) * alpha); });
}

Value logsigmoid(Value x) {
  return rounded_once(x, [](Value v) { return -softplus(-v); });
}

Value softsign(Value x) {
  return rounded_once(x, [](Value v) { return v / (1 + abs(v)); });
}

Value tanhshrink(Value x) {
  return rounded_once(x, [](Value v) { return v - tanh(v); });
}

Value glu(Value x, int64_t axis) {
  auto [a, b] = halves("glu", x, axis);
  return rounded_once({a, b}, [](const Values& v) { return v[0] * sigmoid(v[1]); });
}

Value swiglu(Value x, int64_t axis) {
  auto [a, b] = halves("swiglu", x, axis);
  return rounded_once({a, b}, [](const Values& v) { return silu(v[0]) * v[1]; });
}

Value geglu(Value x, int64_t axis, const std::string& approximate) {
  auto [a, b] = halves("geglu", x, axis);
  return rounded_once({a, b}, [&](const Values& v) { return gelu(v[0], approximate) * v[1]; });
}

}  // namespace tutti
