#include "data/quantized.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/dtype.h"
#include "core/base/status.h"
#include "core/geometry/quantized.h"

namespace tutti {
namespace {

constexpr auto block = static_cast<size_t>(quantized_block);

uint8_t byte_at(const HostTensor& t, size_t i) { return std::to_integer<uint8_t>(t.bytes[i]); }

/// Quant k of block b.
uint8_t quant(const QuantizedTensor& t, size_t b, size_t k) {
  if (t.bits == 8) return byte_at(t.quants, b * block + k);
  uint8_t both = byte_at(t.quants, b * block / 2 + k % (block / 2));
  return k < block / 2 ? both & 15 : both >> 4;
}

void set_quant(QuantizedTensor& t, size_t b, size_t k, uint8_t q) {
  if (t.bits == 8)
    t.quants.bytes[b * block + k] = std::byte{q};
  else
    t.quants.bytes[b * block / 2 + k % (block / 2)] |= std::byte{static_cast<uint8_t>(k < block / 2 ? q : q << 4)};
}

HostTensor zeros(DType dtype, Shape shape) {
  HostTensor t{{dtype, std::move(shape)}, {}};
  t.bytes.resize(num_bytes(t.type));
  return t;
}

}  // namespace

QuantizedTensor blank_quantized(int64_t rows, int64_t columns, int64_t bits) {
  Shape blocks = {rows, columns / quantized_block};
  return {bits, zeros(DType::u8, {rows, columns * bits / 8}), zeros(DType::f16, blocks), zeros(DType::f16, blocks)};
}

Shape QuantizedTensor::shape() const { return quantized_shape(quants.type, scales.type, mins.type, bits); }

QuantizedTensor quantized(const HostTensor& matrix, int64_t bits) {
  const Shape& s = matrix.type.shape;
  if (s.size() != 2 || s[1] % quantized_block != 0 || !is_float(matrix.type.dtype))
    throw invalid(fmt::format("{} cannot be quantized", to_string(matrix.type)),
                  "only float matrices whose rows are multiples of 32 elements can be quantized");
  QuantizedTensor t = blank_quantized(s[0], s[1], bits);
  const double most = bits == 4 ? 15 : 255;
  const auto blocks = static_cast<size_t>(num_elements(s)) / block;
  const HostTensor wide = matrix.to(DType::f32);
  float x[block];
  for (size_t b = 0; b < blocks; ++b) {
    std::memcpy(x, wide.bytes.data() + b * sizeof x, sizeof x);
    auto [low, high] = std::ranges::minmax(x);
    store_element(DType::f16, t.mins.bytes.data(), b, low);
    store_element(DType::f16, t.scales.bytes.data(), b, (double{high} - low) / most);
    double min = t.mins.item(b), scale = t.scales.item(b);
    if (!std::isfinite(min + scale * most))
      throw invalid(fmt::format("block {} has values from {} to {}, which is outside the range that can be quantized",
                                b, low, high));
    for (size_t k = 0; k < block; ++k)
      set_quant(t, b, k, scale > 0 ? static_cast<uint8_t>(std::clamp(std::round((x[k] - min) / scale), 0., most)) : 0);
  }
  return t;
}

HostTensor dequantized(const QuantizedTensor& t) {
  HostTensor y = zeros(DType::f32, t.shape());
  const auto blocks = y.bytes.size() / sizeof(float) / block;
  for (size_t b = 0; b < blocks; ++b) {
    auto scale = static_cast<float>(t.scales.item(b)), min = static_cast<float>(t.mins.item(b));
    for (size_t k = 0; k < block; ++k) {
      float x = scale * static_cast<float>(quant(t, b, k)) + min;
      std::memcpy(y.bytes.data() + (b * block + k) * sizeof x, &x, sizeof x);
    }
  }
  return y;
}

QuantizedTensor with_bits(QuantizedTensor t, int64_t bits) {
  if (t.bits == bits) return t;
  if (bits == 4) return quantized(dequantized(t), 4);
  Shape s = t.shape();
  QuantizedTensor wide = blank_quantized(s[0], s[1], bits);
  for (size_t b = 0, n = wide.quants.bytes.size() / block; b < n; ++b)
    for (size_t k = 0; k < block; ++k) set_quant(wide, b, k, quant(t, b, k));
  wide.scales = std::move(t.scales);
  wide.mins = std::move(t.mins);
  return wide;
}

}  // namespace tutti
