#include <fmt/format.h>
#include <cmath>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/random_bits.h"

namespace tutti {

// public
extern TUTTI_API const OpDef uniform_op;
/// f32 numbers drawn uniformly from [low, high), or low if both are equal; see random_bits.
TUTTI_API Value random_uniform(Value seed, Value step, Shape shape, int64_t stream, double low = 0, double high = 1);
// end of public

const OpDef uniform_op{.name = "uniform",
                       .doc = "y (f32) = low + (high - low) * (bits >> 8) / 2^24, kept below high; bits is u32",
                       .inputs = {"bits"},
                       .attrs = {{"low", Reals{0.0}}, {"high", Reals{1.0}}},
                       .exact = true,
                       .expr =
                           [](In x, const Attrs& a) {
                             if (x[0].dtype() != DType::u32) throw invalid("the random bits must be u32");
                             double low = a.f("low"), high = a.f("high");
                             if (!(low <= high))
                               throw invalid(fmt::format("low = {} must not be above high = {}", low, high));
                             Ex y = low + cast(x[0] >> 8, DType::f32) * 0x1p-24 * (high - low);
                             auto top = static_cast<float>(high);  // rounding may reach high
                             return Exs{min(y, std::fmax(static_cast<float>(low), std::nextafterf(top, -INFINITY)))};
                           },
                       .samples = {{.shapes = {{3, 5}}, .low = 0, .high = 4294967295.0, .dtypes = {DType::u32}},
                                   {.shapes = {{65537}},
                                    .low = 0,
                                    .high = 4294967295.0,
                                    .attrs = {{"low", Reals{-0.3}}, {"high", Reals{2.5}}},
                                    .dtypes = {DType::u32}},
                                   {.shapes = {{64}},
                                    .low = 4294967200.0,
                                    .high = 4294967295.0,
                                    .attrs = {{"low", Reals{1.0}}, {"high", Reals{2.0}}},
                                    .dtypes = {DType::u32}},
                                   {.shapes = {{0}}, .dtypes = {DType::u32}}}};

Value random_uniform(Value seed, Value step, Shape shape, int64_t stream, double low, double high) {
  return call(uniform_op, {random_bits(seed, step, std::move(shape), stream)},
              {{"low", Reals{low}}, {"high", Reals{high}}});
}

}  // namespace tutti
