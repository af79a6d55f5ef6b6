#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/bernoulli.h"
#include "graph/ops/cast.h"
#include "graph/ops/mul.h"
#include "graph/ops/random_bits.h"
#include "graph/ops/select.h"

namespace tutti {

// public
extern TUTTI_API const OpDef dropout_op;
/// Each element is 0 with probability p, else x / (1 - p); x itself if p = 0. The mask is a pure function of `seed`
/// (u32[2]), `step` (i32 scalar) and `stream`; the gradient draws the same mask again.
TUTTI_API Value dropout(Value x, Value seed, Value step, double p, int64_t stream = 0);
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  double p = a.f("p");
  if (!(p >= 0 && p <= 1)) throw invalid(fmt::format("p = {} is outside [0, 1]", p));
  if (!is_float(in[0].dtype)) throw invalid("x needs a float dtype");
  infer_types(random_bits_op, in.subspan(1), Attrs{{"stream", a.ints("stream")}}.over(random_bits_op.attrs));
  return {in[0]};
}

Values decompose(const Call& c) {
  Value x = c.in[0];
  double p = c.a.f("p");
  if (p == 0) return {x};
  Value kept = random_bernoulli(c.in[1], c.in[2], x.shape(), c.a.i("stream"), 1 - p);
  Value wide = size_of(x.dtype()) < 4 ? cast(x, DType::f32) : x;  // f16 and bf16 would round the factor
  return {select(kept, cast(wide * (p < 1 ? 1 / (1 - p) : 0), x.dtype()), x.like(0))};
}

Sample sample(Shape x, double p, int64_t stream) {
  return {.shapes = {std::move(x), {2}, {}},
          .attrs = {{"p", Reals{p}}, {"stream", Ints{stream}}},
          .ranges = {{-1, 1}, {0, 4294967295.0}, {0, 1000000}},
          .dtypes = {DType::f32, DType::u32, DType::i32}};
}

}  // namespace

const OpDef dropout_op{
    .name = "dropout",
    .doc = "y = bernoulli(1 - p) ? x / (1 - p) : 0, the mask drawn from (seed, step, stream); x where p = 0",
    .inputs = {"x", "seed", "step"},
    .attrs = {{"p", Reals{0.5}}, {"stream", Ints{0}}},
    .infer = infer,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {  // linear in x with the same mask
          return Values{dropout(g.d[0], g.in[1], g.in[2], g.a.f("p"), g.a.i("stream")), {}, {}};
        },
    .samples = {sample({3, 5}, 0.5, 0), sample({4, 9}, 0.2, 5), sample({7}, 0, 1), sample({7}, 1, 1),
                sample({0}, 0.5, 1), sample({65537}, 0.1, 2)}};

Value dropout(Value x, Value seed, Value step, double p, int64_t stream) {
  return p == 0 ? x : call(dropout_op, {x, seed, step}, {{"p", Reals{p}}, {"stream", Ints{stream}}});
}

}  // namespace tutti
