// Box-Muller with basic operations only, each rounded to f32: bit-identical on every device.
#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/random_bits.h"

namespace tutti {

// public
extern TUTTI_API const OpDef normal_op;
/// f32 numbers from the normal distribution; uses the streams `stream` and `stream` + 2^31, so `stream` < 2^31. See
/// random_bits.
TUTTI_API Value random_normal(Value seed, Value step, Shape shape, int64_t stream, double mean = 0, double std = 1);
// end of public
namespace {

/// ln x for x in [2^-24, 1]: x = m 2^e with m in [sqrt(1/2), sqrt 2), ln m = 2 artanh((m - 1) / (m + 1)).
Ex ln(Ex x) {
  Ex m = x, e = x.like(0);
  auto scale = [&](double below, double factor, double bits) {
    Ex small = m < below;
    m = select(small, m * factor, m);
    e = select(small, e - bits, e);
  };
  scale(0x1p-16, 0x1p16, 16);
  scale(0x1p-8, 0x1p8, 8);
  scale(0x1p-4, 0x1p4, 4);
  scale(0x1p-2, 0x1p2, 2);
  scale(0.5, 2, 1);
  scale(0.70710678118654752, 2, 1);
  Ex s = (m - 1) / (m + 1), q = s * s;
  Ex series = q * (1.0 / 11) + 1.0 / 9;
  for (double c : {1.0 / 7, 1.0 / 5, 1.0 / 3}) series = series * q + c;
  return e * 0.69314718055994531 + (2 * s + 2 * s * (series * q));
}

/// cos(2 pi u) = -sin(2 pi v) for u in [0, 1), with v = 1/4 - |u - 1/2|, which is exact; sine by its Taylor series.
Ex cos_turn(Ex u) {
  Ex t = (0.25 - abs(u - 0.5)) * 6.2831853071795865, q = t * t;
  Ex series = q * (1.0 / 6227020800) - 1.0 / 39916800;
  for (double c : {1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6}) series = series * q + c;
  return -(t + t * (series * q));
}

}  // namespace

const OpDef normal_op{
    .name = "normal",
    .doc = "y (f32) = mean + std * sqrt(-2 ln((1 + (a >> 8)) / 2^24)) * cos(2 pi (b >> 8) / 2^24); a, b are u32",
    .inputs = {"a", "b"},
    .attrs = {{"mean", Reals{0.0}}, {"std", Reals{1.0}}},
    .exact = true,
    .expr =
        [](In x, const Attrs& at) {
          if (x[0].dtype() != DType::u32 || x[1].dtype() != DType::u32) throw invalid("the random bits must be u32");
          Ex u = (cast(x[0] >> 8, DType::f32) + 1) * 0x1p-24, v = cast(x[1] >> 8, DType::f32) * 0x1p-24;
          Ex z = sqrt(-2 * ln(u)) * cos_turn(v);
          return Exs{z * at.f("std") + at.f("mean")};
        },
    .samples = {{.shapes = {{3, 5}, {3, 5}}, .low = 0, .high = 4294967295.0, .dtypes = {DType::u32, DType::u32}},
                {.shapes = {{65537}, {65537}},
                 .low = 0,
                 .high = 4294967295.0,
                 .attrs = {{"mean", Reals{0.5}}, {"std", Reals{0.02}}},
                 .dtypes = {DType::u32, DType::u32}},
                {.shapes = {{64}, {64}}, .ranges = {{0, 4095}, {0, 4294967295.0}}, .dtypes = {DType::u32, DType::u32}},
                {.shapes = {{0}, {0}}, .dtypes = {DType::u32, DType::u32}}}};

Value random_normal(Value seed, Value step, Shape shape, int64_t stream, double mean, double std) {
  if (stream < 0 || stream >> 31 != 0) throw invalid("random_normal: stream must be in [0, 2^31)");
  Value a = random_bits(seed, step, shape, stream), b = random_bits(seed, step, shape, stream + (int64_t{1} << 31));
  return call(normal_op, {a, b}, {{"mean", Reals{mean}}, {"std", Reals{std}}});
}

}  // namespace tutti
