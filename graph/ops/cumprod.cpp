#include "graph/along_axis.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/mul.h"
#include "graph/softmax.h"

namespace tutti {

// public
extern TUTTI_API const OpDef cumprod_op;
/// y = the inclusive cumulative product of x along `axis`. The gradient is correct if x contains zeros.
inline Value cumprod(Value x, int64_t axis) { return call(cumprod_op, {x}, {{"axis", Ints{axis}}}); }
// end of public
namespace {

/// Contains no division, so that its derivative is correct for zeros.
Values prefixes(const Call& c) {
  return scan({c.in[0]}, c.a.i("axis"),
              [](const Values& left, const Values& right) { return Values{left[0] * right[0]}; });
}

}  // namespace

const OpDef cumprod_op{
    .name = "cumprod",
    .doc = "y = the product of x along `axis` up to each position; the gradient is right where x holds zeros",
    .inputs = {"x"},
    .attrs = {{"axis", Ints{0}}},
    .infer = infer_scan,
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          each_line(in[0].shape(), a.i("axis"), [&](size_t first, size_t step, size_t size) {
            double product = 1;
            for (size_t at = first; size-- > 0; at += step) out[0].at[at] = product *= in[0].at[at];
          });
        },
    .decompose = in_f32<prefixes>,
    .samples = {{.shapes = {{2, 5, 3}}, .low = -1.5, .high = 1.5, .attrs = {{"axis", Ints{1}}}},
                {.shapes = {{3, 6}}, .low = 0.5, .high = 1.5, .attrs = {{"axis", Ints{-1}}}},
                {.shapes = {{5}}, .low = -3, .high = 3, .dtypes = {DType::i32}},
                {.shapes = {{0, 3}}}}};

}  // namespace tutti
