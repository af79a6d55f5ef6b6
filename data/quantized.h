// Weights in blocks of 32 along the last axis, each number a quant of 4 or 8 bits: x = scale q + minimum.
#pragma once
#include "data/host_tensor.h"

namespace tutti {

/// As the op dequantize takes them: quants u8 [rows, columns bits / 8], scales and mins f16 [rows, columns / 32].
struct TUTTI_API QuantizedTensor {
  int64_t bits = 8;
  HostTensor quants, scales, mins;
  /// [rows, columns]
  Shape shape() const;
};

/// Zeros of those sizes; `columns` is a multiple of 32, bits 4 or 8.
TUTTI_API QuantizedTensor blank_quantized(int64_t rows, int64_t columns, int64_t bits);

/// Quants of a matrix of floats whose columns are a multiple of 32: q = round((x - minimum) / scale), where the block's
/// least and largest number are the least and largest quant (of 4 bits 0 and 15, of 8 bits 0 and 255). Throws
/// Error(invalid) for another shape and for numbers that are not finite or whose scale is beyond f16.
TUTTI_API QuantizedTensor quantized(const HostTensor& matrix, int64_t bits);

/// The numbers that they stand for, f32 [rows, columns].
TUTTI_API HostTensor dequantized(const QuantizedTensor& t);

/// The same in that many bits: 4 as 8 without a loss; 8 as 4 by quantising anew.
TUTTI_API QuantizedTensor with_bits(QuantizedTensor t, int64_t bits);

}  // namespace tutti
