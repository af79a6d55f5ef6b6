// Quantized tensors: 8 and 16 bit integers are computed in f32, where their sums of products are exact.
#include <fmt/format.h>

#include "graph/ops.h"
#include "onnx/ops/windows.h"

namespace tutti::onnx {
namespace {

constexpr int64_t most_exact = int64_t{1} << 24;  // integers up to here are exact in f32

/// Scale or zero point `k` in a shape that broadcasts to x: of all elements, of one axis, or of blocks of it.
Value spread(const Context& c, size_t k, Value x, int64_t axis) {
  Value v = c.in(k);
  if (num_elements(v.shape()) == 1) return reshape(v, {});
  axis = axis_of(c, axis, x.rank());
  int64_t size = x.shape()[static_cast<size_t>(axis)], block = c.i("block_size", 0);
  if (v.rank() == 1 && block == 0) {
    if (v.shape()[0] != size) c.bad(fmt::format("input {} has {} values for an axis of {}", k, v.shape()[0], size));
    Shape along(x.rank(), 1);
    along[static_cast<size_t>(axis)] = size;
    return reshape(v, along);
  }
  if (v.rank() != x.rank() || block < 1) c.bad(fmt::format("input {} fits neither an axis nor blocks of it", k));
  return narrow(repeat_interleave(v, block, axis), axis, 0, size);
}

/// The integers of input `x` less their zero point `zero`, in f32.
Value centred(const Context& c, size_t x, size_t zero, int64_t axis) {
  Value v = cast(c.in(x), DType::f32);
  return c.has(zero) ? v - cast(spread(c, zero, v, axis), DType::f32) : v;
}

/// The range of a quantized type, and its dtype in the graph.
struct Range {
  double low, high;
  DType dtype;
};

Range range_of(const Context& c, ElementType type) {
  const std::string name = element_name(type);
  if (name == "UINT8") return {0, 255, DType::u8};
  if (name == "INT8") return {-128, 127, DType::i32};
  if (name == "INT16") return {-32768, 32767, DType::i32};
  c.unsupported(fmt::format("quantization to {}", name));
}

/// The range of the type of zero point `k`; UINT8 where it is omitted, or what output_dtype says.
Range range_of_zero(const Context& c, size_t k) {
  if (!c.has(k))
    return range_of(
        c, static_cast<ElementType>(c.i("output_dtype", 0) ? c.i("output_dtype", 0) : element_type(DType::u8)));
  if (auto narrow = c.narrow_type(k)) return range_of(c, *narrow);
  if (c.in(k).dtype() != DType::u8) c.unsupported("a zero point that is not an initializer");
  return range_of(c, element_type(DType::u8));
}

/// y, in units of the result's scale, as integers around zero point `k`.
Value quantized(const Context& c, Value y, size_t k, int64_t axis = 1) {
  if (c.options().training) c.unsupported("quantization in training, where it would have no gradient,");
  Range range = range_of_zero(c, k);
  y = round(y);
  if (c.has(k)) y = y + cast(spread(c, k, y, axis), DType::f32);
  return cast(clamp(y, range.low, range.high), range.dtype);
}

Value quantize(const Context& c) {
  Value x = cast(c.in(0), DType::f32);
  int64_t axis = c.i("axis", 1);
  return quantized(c, x / cast(spread(c, 1, x, axis), DType::f32), 2, axis);
}

Value dequantize(const Context& c) {
  int64_t axis = c.i("axis", 1);
  Value x = centred(c, 0, 2, axis);
  return cast(x * cast(spread(c, 1, x, axis), DType::f32), c.in(1).dtype());
}

/// By the range of x: its scale and zero point are results, too.
Values quantize_by_range(const Context& c) {
  if (c.options().training) c.unsupported("quantization in training, where it would have no gradient,");
  Value x = c.in(0), zero = x.like(0);
  Value high = maximum(max(x, {}, false), zero), low = minimum(min(x, {}, false), zero);
  Value scale = (high - low) * (1.0 / 255);
  scale = select(equal(scale, zero), x.like(1), scale);
  Value point = clamp(round(-low / scale), 0, 255);
  return {cast(clamp(round(x / scale) + point, 0, 255), DType::u8), scale, cast(point, DType::u8)};
}

/// Sums of products of integers below 256, exact: where a sum of `taps` could leave f32's integers, a in two parts.
template <class Product>
Value exact(const Context& c, Value a, int64_t taps, const Product& product) {
  if (taps * 255 * 255 < most_exact) return cast(product(a), DType::i32);
  if (taps * 255 * 16 >= most_exact) c.unsupported(fmt::format("sums of {} products of integers", taps));
  Value upper = floor(a * (1.0 / 16)), lower = a - upper * 16;
  return cast(product(upper), DType::i32) * 16 + cast(product(lower), DType::i32);
}

/// Axis of the zero points of a matrix's rows, or of its columns.
int64_t row_axis(Value x) { return static_cast<int64_t>(x.rank()) - (x.rank() > 1 ? 2 : 1); }
int64_t column_axis(Value x) { return static_cast<int64_t>(x.rank()) - 1; }

Value integer_product(const Context& c, size_t a, size_t a_zero, size_t b, size_t b_zero) {
  Value x = centred(c, a, a_zero, row_axis(c.in(a))), w = centred(c, b, b_zero, column_axis(c.in(b)));
  if (x.rank() < 1 || w.rank() < 1) c.bad("a factor is a scalar");
  return exact(c, x, x.shape().back(), [&](Value part) { return product(part, w); });
}

Value integer_convolution(const Context& c, size_t x_at, size_t x_zero, size_t w_at, size_t w_zero) {
  Value x = centred(c, x_at, x_zero, 1), w = centred(c, w_at, w_zero, 0);
  int64_t taps = 1;
  for (size_t k = 1; k < w.rank(); ++k) taps *= w.shape()[k];
  return exact(c, x, taps, [&](Value part) { return convolution(c, part, w); });
}

/// The scale of a result in units of its own: the product of the operands' by that.
Value requantized(const Context& c, Value sums, size_t a_scale, size_t b_scale, size_t y_scale, int64_t b_axis) {
  Value y = cast(sums, DType::f32);
  Value scale = cast(spread(c, a_scale, y, row_axis(y)), DType::f32) * cast(spread(c, b_scale, y, b_axis), DType::f32);
  return quantized(c, y * (scale / cast(spread(c, y_scale, y, row_axis(y)), DType::f32)), y_scale + 1, row_axis(y));
}

/// x, its scale, its zero point; w, the same; of y; a bias in units of the sums.
Value quantized_convolution(const Context& c) {
  return requantized(c, with_bias(c, integer_convolution(c, 0, 2, 3, 5), 8), 1, 4, 6, 1);
}

Value quantized_product(const Context& c) {
  Value y = integer_product(c, 0, 2, 3, 5);
  return requantized(c, y, 1, 4, 6, column_axis(y));
}

/// Arithmetic of com.microsoft: both operands dequantized, the result quantized.
Value between(const Context& c, Value (*f)(Value, Value)) {
  auto real = [&](size_t k) { return centred(c, k, k + 2, 0) * cast(spread(c, k + 1, c.in(k), 0), DType::f32); };
  return quantized(c, f(real(0), real(3)) / cast(c.in(6), DType::f32), 7, 0);
}

}  // namespace

void add_quantized(Table& t) {
  t["QuantizeLinear"] = [](const Context& c) { return Values{quantize(c)}; };
  t["DequantizeLinear"] = [](const Context& c) { return Values{dequantize(c)}; };
  t["DynamicQuantizeLinear"] = quantize_by_range;
  t["MatMulInteger"] = [](const Context& c) { return Values{integer_product(c, 0, 2, 1, 3)}; };
  t["ConvInteger"] = [](const Context& c) { return Values{integer_convolution(c, 0, 2, 1, 3)}; };
  t["QLinearConv"] = [](const Context& c) { return Values{quantized_convolution(c)}; };
  t["QLinearMatMul"] = [](const Context& c) { return Values{quantized_product(c)}; };
  t["com.microsoft.QLinearAdd"] = [](const Context& c) {
    return Values{between(c, [](Value a, Value b) { return a + b; })};
  };
  t["com.microsoft.QLinearMul"] = [](const Context& c) {
    return Values{between(c, [](Value a, Value b) { return a * b; })};
  };
}

}  // namespace tutti::onnx
