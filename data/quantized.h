// Weights quantized in blocks of 32 along the last axis, with 4 or 8 bits per element q: x = scale q + minimum.
#pragma once
#include "data/host_tensor.h"

namespace tutti {

/// In the form of the op dequantize: quants u8 [rows, columns bits / 8], scales and mins f16 [rows, columns / 32].
struct TUTTI_API QuantizedTensor {
  int64_t bits = 8;
  HostTensor quants, scales, mins;
  /// [rows, columns]
  Shape shape() const;
};

/// A tensor of that shape with all bytes 0; `columns` is a multiple of 32, bits 4 or 8.
TUTTI_API QuantizedTensor blank_quantized(int64_t rows, int64_t columns, int64_t bits);

/// Quantizes a float matrix whose columns are a multiple of 32: q = round((x - minimum) / scale); a block's smallest
/// and largest element become the smallest and largest quant (4 bits: 0 and 15, 8 bits: 0 and 255). Throws
/// Error(invalid) for another shape, for non-finite elements and for a scale that overflows f16.
TUTTI_API QuantizedTensor quantized(const HostTensor& matrix, int64_t bits);

/// The dequantized elements, f32 [rows, columns].
TUTTI_API HostTensor dequantized(const QuantizedTensor& t);

/// Converts to another number of bits: 4 to 8 is lossless; 8 to 4 quantizes again.
TUTTI_API QuantizedTensor with_bits(QuantizedTensor t, int64_t bits);

}  // namespace tutti
