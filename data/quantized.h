// Weights quantized in blocks of 32 along the last axis, with 4 or 8 bits per element q: x = scale q + minimum.
#pragma once
#include <span>

#include "core/geometry/quantized.h"
#include "data/host_tensor.h"

namespace tutti {

/// In the form of the op dequantize: quants u8 [rows, columns bits / 8], scales and mins f16 [rows, columns / group].
/// Nested: scales and mins are u8, which stand for the whole numbers -128 to 127, times the units, f32 [rows, columns /
/// 256].
struct TUTTI_API QuantizedTensor {
  QuantForm form;
  HostTensor quants, scales, mins, scale_units = {}, min_units = {};
  /// [rows, columns]
  Shape shape() const;
  /// Sets elements first, first + 1, … of the flattened matrix; each only once, from 0.
  void set_quants(size_t first, std::span<const uint8_t> q);
};

/// A tensor of that shape with all bytes 0; `columns` is a multiple of 32, or of 256 if nested.
TUTTI_API QuantizedTensor blank_quantized(int64_t rows, int64_t columns, QuantForm form);

/// Quantizes a float matrix whose columns are a multiple of 32 to `bits` bits in groups of 32, not nested:
/// q = round((x - minimum) / scale); a block's smallest and largest element become the smallest and largest quant (4
/// bits: 0 and 15, 8 bits: 0 and 255). Throws Error(invalid) for another shape, for non-finite elements and for a scale
/// that overflows f16.
TUTTI_API QuantizedTensor quantized(const HostTensor& matrix, int64_t bits);

/// The dequantized elements, f32 [rows, columns].
TUTTI_API HostTensor dequantized(const QuantizedTensor& t);

/// Converts to another form: from 4 to 8 bits is lossless; to another form that is not nested quantizes again. Throws
/// Error(invalid) for another nested form.
TUTTI_API QuantizedTensor with_form(QuantizedTensor t, QuantForm form);

}  // namespace tutti
