#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/div.h"
#include "graph/ops/floor.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef remainder_op;
/// a - b floor(a / b), with the sign of b: fmod(a, b), plus b if the signs differ, as in PyTorch. For b = 0 NaN; a for
/// integers.
inline Value remainder(Value a, Value b) { return call(remainder_op, {a, b}); }
inline Value remainder(Value a, double b) { return remainder(a, a.like(b)); }
// end of public
namespace {

Exs value(In x, const Attrs&) {
  Ex a = x[0], b = x[1], r = is_float(a.dtype()) ? fmod(a, b) : a - b * (a / b);
  return {select(((r < 0) & (0 < b)) | ((0 < r) & (b < 0)), r + b, r)};
}

Values vjp(const VjpContext& g) {
  Value a = g.in[0], b = g.in[1], d = g.d[0];
  return {sum_to(d, a.shape()), sum_to(-(d * floor(a / b)), b.shape())};
}

}  // namespace

const OpDef remainder_op{
    .name = "remainder",
    .doc = "y = a - b floor(a / b), with the sign of b; where b is 0: NaN, of integers a",
    .inputs = {"a", "b"},
    .expr = value,
    .vjp = in_f32<vjp>,
    .samples = {{.shapes = {{3, 5}, {3, 5}}, .ranges = {{-9, 9}, {0.7, 2}}},
                {.shapes = {{2, 1, 4}, {3, 1}}, .ranges = {{-9, 9}, {-2, -0.7}}},
                {.shapes = {{5, 7}, {7}}, .low = -9, .high = 9, .dtypes = {DType::i32, DType::i32}},
                {.shapes = {{0}, {1}}}}};

}  // namespace tutti
