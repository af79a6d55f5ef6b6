// Numbers in blocks of 32 along the last axis, each block with a scale and a minimum.
#pragma once
#include "core/base/shape.h"

namespace tutti {

constexpr int64_t quantized_block = 32;
/// Rows up to which kernels read quants themselves; for more the weights are widened first. Chosen, not tuned.
constexpr int64_t quantized_few_rows = 8;

/// The shape of what quants u8 [..., K bits / 8], scales and mins [..., K / 32] (floats, f16 in memory) stand for:
/// [..., K]. Throws Error where they do not fit, and for bits other than 4 and 8.
Shape quantized_shape(const TensorType& quants, const TensorType& scales, const TensorType& mins, int64_t bits);

/// The shape of x Wᵀ, [rows, features], for x [rows, inputs] of a float dtype and such a W [features, inputs]. Throws
/// Error where they do not fit.
Shape quantized_product(const TensorType& x, const TensorType& quants, const TensorType& scales, const TensorType& mins,
                        int64_t bits);

}  // namespace tutti
