
#include "core/geometry/quantized.h"
#include "graph/op.h"
#include "graph/ops/cast.h"
#include "graph/ops/dequantize.h"
#include "graph/ops/matmul.h"

namespace tutti {

// public
extern TUTTI_API const OpDef quantized_matmul_op;
/// y = x Wᵀ for x [rows, inputs] and quantized weights W = dequantize(quants, scales, mins, bits, group), [features,
/// inputs]; y has the dtype of x. Kernels need not round W to that dtype.
TUTTI_API Value quantized_matmul(Value x, Value quants, Value scales, Value mins, int64_t bits, int64_t group = 32);
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  return {{in[0].dtype, quantized_product(in[0], in[1], in[2], in[3], a.i("bits"), a.i("group"))}};
}

}  // namespace

Value quantized_matmul(Value x, Value quants, Value scales, Value mins, int64_t bits, int64_t group) {
  return call(quantized_matmul_op, {x, quants, scales, mins}, {{"bits", Ints{bits}}, {"group", Ints{group}}});
}

const OpDef quantized_matmul_op{
    .name = "quantized_matmul",
    .doc =
        "y = x Wᵀ, x [rows, inputs], of weights W [features, inputs] = dequantize(quants, scales, mins), in the dtype "
        "of x",
    .inputs = {"x", "quants", "scales", "mins"},
    .attrs = {{"bits", Ints{8}}, {"group", Ints{32}}},
    .infer = infer,
    .decompose =
        [](const Call& c) {
          Value w = dequantize(c.in[1], c.in[2], c.in[3], c.a.i("bits"), c.a.i("group"));
          return Values{matmul(c.in[0], cast(w, c.in[0].dtype()), false, true)};
        },
    .samples = {
        {.shapes = {{1, 64}, {5, 64}, {5, 2}, {5, 2}},
         .ranges = {{-1, 1}, {0, 255}, {-0.01, 0.01}, {-1, 1}},
         .dtypes = {DType::f32, DType::u8, DType::f16, DType::f16}},
        {.shapes = {{3, 96}, {7, 48}, {7, 3}, {7, 3}},
         .attrs = {{"bits", Ints{4}}},
         .ranges = {{-1, 1}, {0, 255}, {-0.1, 0.1}, {-1, 1}},
         .dtypes = {DType::f32, DType::u8, DType::f16, DType::f16}},
        {.shapes = {{1, 1056}, {70, 528}, {70, 33}, {70, 33}},
         .attrs = {{"bits", Ints{4}}},
         .ranges = {{-1, 1}, {0, 255}, {0, 0.1}, {-1, 0}},
         .dtypes = {DType::f32, DType::u8, DType::f16, DType::f16}},
        {.shapes = {{1, 544}, {9, 272}, {9, 17}, {9, 17}},
         .attrs = {{"bits", Ints{4}}},
         .ranges = {{-1, 1}, {0, 255}, {-0.1, 0.1}, {-1, 1}},
         .dtypes = {DType::f32, DType::u8, DType::f32, DType::f32}},
        {.shapes = {{2, 288}, {11, 288}, {11, 18}, {11, 18}},
         .attrs = {{"group", Ints{16}}},
         .ranges = {{-1, 1}, {0, 255}, {-0.01, 0.01}, {-1, 1}},
         .dtypes = {DType::f32, DType::u8, DType::f32, DType::f32}},
        {.shapes = {{3, 96}, {5, 48}, {5, 6}, {5, 6}},
         .attrs = {{"bits", Ints{4}}, {"group", Ints{16}}},
         .ranges = {{-1, 1}, {0, 255}, {-0.1, 0.1}, {-1, 1}},
         .dtypes = {DType::f32, DType::u8, DType::f16, DType::f16}},
        {.shapes = {{0, 32}, {2, 32}, {2, 1}, {2, 1}}, .dtypes = {DType::f32, DType::u8, DType::f16, DType::f16}},
        {.shapes = {{40, 32}, {33, 32}, {33, 1}, {33, 1}},
         .ranges = {{-1, 1}, {0, 255}, {-0.01, 0.01}, {-1, 1}},
         .dtypes = {DType::f32, DType::u8, DType::f16, DType::f16}}}};

}  // namespace tutti
