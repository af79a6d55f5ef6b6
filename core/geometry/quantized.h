// Tensors quantized in blocks of 32 along the last axis, each block with a scale and a minimum.
#pragma once
#include "core/base/shape.h"

namespace tutti {

constexpr int64_t quantized_block = 32;
/// Largest number of rows for which kernels read the quants directly; for more rows the weights are dequantized first.
/// Not tuned.
constexpr int64_t quantized_few_rows = 8;

/// The shape [..., K] of the dequantized tensor, for quants u8 [..., K bits / 8], scales and mins [..., K / 32]
/// (floats, f16 in memory). Throws Error if they do not match, and for bits other than 4 and 8.
Shape quantized_shape(const TensorType& quants, const TensorType& scales, const TensorType& mins, int64_t bits);

/// The shape of x Wᵀ, [rows, features], for x [rows, inputs] of a float dtype and a quantized W [features, inputs].
/// Throws Error if they do not match.
Shape quantized_product(const TensorType& x, const TensorType& quants, const TensorType& scales, const TensorType& mins,
                        int64_t bits);

}  // namespace tutti
