
#include "core/geometry/quantized.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/equal.h"
#include "graph/ops/floor.h"
#include "graph/ops/iota.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"

namespace tutti {

// public
extern TUTTI_API const OpDef dequantize_op;
/// Dequantizes blocks of 32 along the last axis: y = scale q + min, f32 (f64 for f64 scales). `quants`: u8, one q per
/// byte (8 bits) or two (4 bits: byte j of a block's 16 holds q[j] in its low nibble and q[j + 16] in its high one, as
/// in GGUF's q4_1); `scales` and `mins`: f16 or f32, one per `group` of 32 or 16 elements.
TUTTI_API Value dequantize(Value quants, Value scales, Value mins, int64_t bits, int64_t group = 32);
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  DType wide = in[1].dtype == DType::f64 ? DType::f64 : DType::f32;
  return {{wide, quantized_shape(in[0], in[1], in[2], a.i("bits"), a.i("group"))}};
}

Values decompose(const Call& c) {
  Value quants = c.in[0];
  const int64_t group = c.a.i("group"), bits = c.a.i("bits");
  Shape y = quantized_shape(quants.type(), c.in[1].type(), c.in[2].type(), bits, group), blocks = c.in[1].shape();
  blocks.back() = y.back() / quantized_block;
  auto apart = [&](Value v, std::initializer_list<int64_t> sizes) {
    Shape s = blocks;
    s.insert(s.end(), sizes);
    return reshape(v, s);
  };
  DType wide = c.in[1].dtype() == DType::f64 ? DType::f64 : DType::f32;
  const int64_t half = quantized_block / 2;
  Value q;
  if (bits == 4) {
    Shape sizes = blocks;
    sizes.insert(sizes.end(), {2, half});
    q = broadcast(cast(apart(quants, {1, half}), wide), sizes);
    Value high = floor(q * (1.0 / 16)), which = iota(q.graph(), sizes, static_cast<int64_t>(sizes.size()) - 2);
    q = select(equal(which, which.like(0)), q - high * 16.0, high);
  } else {
    q = cast(apart(quants, {2, half}), wide);
  }
  const int64_t parts = quantized_block / group;
  Value scale = cast(apart(c.in[1], {parts, 1}), wide), min = cast(apart(c.in[2], {parts, 1}), wide);
  return {reshape(q * scale + min, y)};
}

}  // namespace

Value dequantize(Value quants, Value scales, Value mins, int64_t bits, int64_t group) {
  return call(dequantize_op, {quants, scales, mins}, {{"bits", Ints{bits}}, {"group", Ints{group}}});
}

const OpDef dequantize_op{
    .name = "dequantize",
    .doc =
        "y = scale q + min in f32, by blocks of 32 along the last axis; quants u8 [..., K bits / 8] (of 4 bits two a "
        "byte: element j of a block in the low half of its byte j, element j + 16 in the high one), scales and mins "
        "f16 or f32 [..., K / group], group 32 or 16",
    .inputs = {"quants", "scales", "mins"},
    .attrs = {{"bits", Ints{8}}, {"group", Ints{32}}},
    .infer = infer,
    .decompose = decompose,
    .samples = {{.shapes = {{3, 64}, {3, 2}, {3, 2}},
                 .ranges = {{0, 255}, {-1, 1}, {-1, 1}},
                 .dtypes = {DType::u8, DType::f16, DType::f16}},
                {.shapes = {{3, 64}, {3, 4}, {3, 4}},
                 .attrs = {{"bits", Ints{4}}},
                 .ranges = {{0, 255}, {-1, 1}, {-1, 1}},
                 .dtypes = {DType::u8, DType::f16, DType::f16}},
                {.shapes = {{2, 5, 16}, {2, 5, 1}, {2, 5, 1}},
                 .attrs = {{"bits", Ints{4}}},
                 .ranges = {{0, 255}, {0, 1}, {-1, 0}},
                 .dtypes = {DType::u8, DType::f16, DType::f16}},
                {.shapes = {{3, 64}, {3, 4}, {3, 4}},
                 .attrs = {{"group", Ints{16}}},
                 .ranges = {{0, 255}, {-1, 1}, {-1, 1}},
                 .dtypes = {DType::u8, DType::f32, DType::f32}},
                {.shapes = {{2, 48}, {2, 6}, {2, 6}},
                 .attrs = {{"bits", Ints{4}}, {"group", Ints{16}}},
                 .ranges = {{0, 255}, {-1, 1}, {-1, 1}},
                 .dtypes = {DType::u8, DType::f32, DType::f32}},
                {.shapes = {{0, 32}, {0, 1}, {0, 1}}, .dtypes = {DType::u8, DType::f16, DType::f16}}}};

}  // namespace tutti
