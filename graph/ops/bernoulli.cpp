#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/random_bits.h"

namespace tutti {

// public
extern TUTTI_API const OpDef bernoulli_op;
/// bool, true with probability p; see random_bits.
TUTTI_API Value random_bernoulli(Value seed, Value step, Shape shape, int64_t stream, double p);
// end of public

const OpDef bernoulli_op{
    .name = "bernoulli",
    .doc = "y (bool) = (bits >> 8) / 2^24 < p; bits is u32",
    .inputs = {"bits"},
    .attrs = {{"p", Reals{0.5}}},
    .exact = true,
    .expr =
        [](In x, const Attrs& a) {
          if (x[0].dtype() != DType::u32) throw invalid("the random bits must be u32");
          double p = a.f("p");
          if (!(p >= 0 && p <= 1)) throw invalid(fmt::format("p = {} is outside [0, 1]", p));
          return Exs{cast(x[0] >> 8, DType::f32) * 0x1p-24 < p};
        },
    .samples = {
        {.shapes = {{3, 5}}, .low = 0, .high = 4294967295.0, .dtypes = {DType::u32}},
        {.shapes = {{65537}}, .low = 0, .high = 4294967295.0, .attrs = {{"p", Reals{0.2}}}, .dtypes = {DType::u32}},
        {.shapes = {{0}}, .dtypes = {DType::u32}}}};

Value random_bernoulli(Value seed, Value step, Shape shape, int64_t stream, double p) {
  return call(bernoulli_op, {random_bits(seed, step, std::move(shape), stream)}, {{"p", Reals{p}}});
}

}  // namespace tutti
