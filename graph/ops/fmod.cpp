#include "graph/functions/elementwise.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/div.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef fmod_op;
/// a - b trunc(a / b), exact, with the sign of a: C's fmod for floats, % for integers. For b = 0 NaN; a for integers.
inline Value fmod(Value a, Value b) { return call(fmod_op, {a, b}); }
// end of public
namespace {

Exs value(In x, const Attrs&) {
  Ex a = x[0], b = x[1];
  return {is_float(a.dtype()) ? fmod(a, b) : a - b * (a / b)};
}

Values vjp(const VjpContext& g) {
  Value a = g.in[0], b = g.in[1], d = g.d[0];
  return {sum_to(d, a.shape()), sum_to(-(d * trunc(a / b)), b.shape())};
}

}  // namespace

const OpDef fmod_op{.name = "fmod",
                    .doc = "y = a - b trunc(a / b), exact, with the sign of a; where b is 0: NaN, of integers a",
                    .inputs = {"a", "b"},
                    .expr = value,
                    .vjp = in_f32<vjp>,
                    .samples = {{.shapes = {{3, 5}, {3, 5}}, .ranges = {{-9, 9}, {0.7, 2}}},
                                {.shapes = {{2, 1, 4}, {3, 1}}, .ranges = {{-9, 9}, {-2, -0.7}}},
                                {.shapes = {{5, 7}, {7}}, .low = -9, .high = 9, .dtypes = {DType::i32, DType::i32}},
                                {.shapes = {{0}, {1}}}}};

}  // namespace tutti
