// Tensors quantized in blocks of 32 along the last axis, with a scale and a minimum for each block or half of one.
#pragma once
#include <vector>

#include "core/base/shape.h"

namespace tutti {

constexpr int64_t quantized_block = 32;
/// Number of elements for which nested scales share a unit.
constexpr int64_t quantized_superblock = 256;

/// How a quantized tensor is stored: element = scale q + minimum.
struct QuantForm {
  int64_t bits = 0;     ///< of an element's q: 4 or 8; 0: not quantized
  int64_t group = 32;   ///< elements that share a scale and a minimum: 32 or 16
  bool nested = false;  ///< scales and minimums are whole numbers, times units shared by 256 elements
  bool operator==(const QuantForm&) const = default;
};

/// Largest number of rows for which kernels read the quants directly; for more rows the weights are dequantized first.
/// Not tuned.
constexpr int64_t quantized_few_rows = 8;

/// The shape [..., K] of the dequantized tensor, for quants u8 [..., K bits / 8], scales and mins [..., K / group]
/// (floats, f16 or f32 in memory). Throws Error if they do not match, for bits other than 4 and 8, and for groups other
/// than 16 and 32.
Shape quantized_shape(const TensorType& quants, const TensorType& scales, const TensorType& mins, int64_t bits,
                      int64_t group = quantized_block);

/// The shape of x Wᵀ, [rows, features], for x [rows, inputs] of a float dtype and a quantized W [features, inputs].
/// Throws Error if they do not match.
Shape quantized_product(const TensorType& x, const TensorType& quants, const TensorType& scales, const TensorType& mins,
                        int64_t bits, int64_t group = quantized_block);

/// The types of the parts of a quantized matrix: quants u8 [rows, columns bits / 8], scales and mins [rows, columns /
/// group], f16; if nested u8 (-128 to 127 with 128 added), with their units, f32 [rows, columns / 256]. `columns` is a
/// multiple of 32, or of 256 if nested.
std::vector<TensorType> quantized_parts(int64_t rows, int64_t columns, QuantForm form);

}  // namespace tutti
