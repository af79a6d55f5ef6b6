// Sorting along an axis.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace tutti::kernels {

/// Stable sort of x [outer, size, inner] along its middle axis; NaN counts as largest. 8-byte elements are not
/// supported; size < 2^31.
struct Sort {
  DType type;
  int64_t outer, size, inner;
  int64_t count;  ///< number of sorted elements to return per line, <= size
  bool descending;

  /// Bytes of scratch, aligned to 8, that run() needs for `threads` threads.
  size_t scratch_bytes(int threads) const;
  /// Values and indices [outer, count, inner]; either may be null.
  void run(const void* x, void* values, int32_t* indices, std::byte* scratch, int threads) const;
};

}  // namespace tutti::kernels
