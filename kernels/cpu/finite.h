// Whether numbers are finite.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace tutti::kernels {

/// Whether no number is inf or NaN; f32, f16 or bf16.
inline bool all_finite(DType dtype, const void* at, size_t bytes) {
  uint32_t special = 0;
  if (dtype == DType::f32) {
    auto* x = static_cast<const uint32_t*>(at);
    for (size_t i = 0; i < bytes / 4; ++i) special |= (x[i] & 0x7f800000u) == 0x7f800000u;
  } else {
    uint16_t high = dtype == DType::f16 ? 0x7c00 : 0x7f80;
    auto* x = static_cast<const uint16_t*>(at);
    for (size_t i = 0; i < bytes / 2; ++i) special |= (x[i] & high) == high;
  }
  return special == 0;
}

}  // namespace tutti::kernels
