// Products with block-quantized weights (core/geometry/quantized.h), which are not dequantized to memory.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa_kernels.h"

namespace tutti::kernels {

/// y [rows, features] = x [rows, inputs] Wᵀ, W [features, inputs] in 4 or 8 bits; x and y have the storage type, sums
/// are f32.
struct QuantizedProduct {
  int64_t rows, features, inputs;
  int bits;
  int64_t group;   ///< elements per scale and minimum: 32 or 16
  Storage scales;  ///< of scales and minimums: f16 or word
  Storage storage;

  size_t scratch_bytes(int threads) const;
  void run(const void* x, const uint8_t* quants, const void* scale_data, const void* min_data, void* y,
           std::byte* scratch, int threads) const;
};

}  // namespace tutti::kernels
