#include "data/quantized.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/dtype.h"
#include "core/base/status.h"

namespace tutti {
namespace {

constexpr auto block = static_cast<size_t>(quantized_block);
constexpr int nested_zero = 128;  // nested scales are stored with this added

uint8_t byte_at(const HostTensor& t, size_t i) { return std::to_integer<uint8_t>(t.bytes[i]); }

/// Quant i of the flattened matrix.
uint8_t quant(const QuantizedTensor& t, size_t i) {
  if (t.form.bits == 8) return byte_at(t.quants, i);
  const size_t k = i % block;
  uint8_t both = byte_at(t.quants, i / block * block / 2 + k % (block / 2));
  return k < block / 2 ? both & 15 : both >> 4;
}

HostTensor zeros(const TensorType& type) {
  HostTensor t{type, {}};
  t.bytes.resize(num_bytes(t.type));
  return t;
}

/// Scale or minimum g of the flattened matrix.
float number(const QuantForm& form, const HostTensor& all, const HostTensor& units, size_t g) {
  if (!form.nested) return static_cast<float>(all.item(g));
  auto unit = static_cast<float>(units.item(g / static_cast<size_t>(quantized_superblock / form.group)));
  return unit * static_cast<float>(byte_at(all, g) - nested_zero);
}

}  // namespace

QuantizedTensor blank_quantized(int64_t rows, int64_t columns, QuantForm form) {
  std::vector<TensorType> types = quantized_parts(rows, columns, form);
  QuantizedTensor t{form, zeros(types[0]), zeros(types[1]), zeros(types[2])};
  if (form.nested) t.scale_units = t.min_units = zeros(types[3]);
  return t;
}

Shape QuantizedTensor::shape() const {
  if (!form.nested) return quantized_shape(quants.type, scales.type, mins.type, form.bits, form.group);
  const Shape& s = scales.type.shape;
  const int64_t rows = s.size() == 2 ? s[0] : 0, columns = s.size() == 2 ? s[1] * form.group : 0;
  const std::vector<TensorType> own = {quants.type, scales.type, mins.type, scale_units.type, min_units.type};
  if (columns % quantized_superblock != 0 || own != quantized_parts(rows, columns, form))
    throw invalid(fmt::format("quants are {}, scales {}, mins {}, their units {} and {}, which do not match",
                              to_string(own[0]), to_string(own[1]), to_string(own[2]), to_string(own[3]),
                              to_string(own[4])));
  return {rows, columns};
}

void QuantizedTensor::set_quants(size_t first, std::span<const uint8_t> q) {
  if (form.bits == 8) {
    std::memcpy(quants.bytes.data() + first, q.data(), q.size());
    return;
  }
  for (size_t i = first; i < first + q.size(); ++i) {
    const size_t k = i % block;
    uint8_t half = q[i - first];
    quants.bytes[i / block * block / 2 + k % (block / 2)] |=
        std::byte{static_cast<uint8_t>(k < block / 2 ? half : half << 4)};
  }
}

QuantizedTensor quantized(const HostTensor& matrix, int64_t bits) {
  const Shape& s = matrix.type.shape;
  if (s.size() != 2 || s[1] % quantized_block != 0 || !is_float(matrix.type.dtype))
    throw invalid(fmt::format("{} cannot be quantized", to_string(matrix.type)),
                  "only float matrices whose rows are multiples of 32 elements can be quantized");
  QuantizedTensor t = blank_quantized(s[0], s[1], {.bits = bits});
  const double most = bits == 4 ? 15 : 255;
  const auto blocks = static_cast<size_t>(num_elements(s)) / block;
  const HostTensor wide = matrix.to(DType::f32);
  float x[block];
  uint8_t q[block];
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
      q[k] = scale > 0 ? static_cast<uint8_t>(std::clamp(std::round((x[k] - min) / scale), 0., most)) : 0;
    t.set_quants(b * block, q);
  }
  return t;
}

HostTensor dequantized(const QuantizedTensor& t) {
  HostTensor y = zeros({DType::f32, t.shape()});
  const auto group = static_cast<size_t>(t.form.group), groups = y.bytes.size() / sizeof(float) / group;
  for (size_t g = 0; g < groups; ++g) {
    const float scale = number(t.form, t.scales, t.scale_units, g), min = number(t.form, t.mins, t.min_units, g);
    for (size_t i = g * group; i < (g + 1) * group; ++i) {
      float x = scale * static_cast<float>(quant(t, i)) + min;
      std::memcpy(y.bytes.data() + i * sizeof x, &x, sizeof x);
    }
  }
  return y;
}

QuantizedTensor with_form(QuantizedTensor t, QuantForm form) {
  if (t.form == form) return t;
  if (form.nested || form.group != quantized_block)
    throw invalid("quantized weights cannot be converted to the form of another file", "use the file's own form");
  if (t.form != QuantForm{.bits = 4} || form.bits != 8) return quantized(dequantized(t), form.bits);
  Shape s = t.shape();
  QuantizedTensor wide = blank_quantized(s[0], s[1], form);
  for (size_t i = 0; i < wide.quants.bytes.size(); ++i) wide.quants.bytes[i] = std::byte{quant(t, i)};
  wide.scales = std::move(t.scales);
  wide.mins = std::move(t.mins);
  return wide;
}

}  // namespace tutti
