// Lines put in order.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace tutti::kernels {

/// Sorts x [outer, size, inner] along its middle axis, stable; NaN counts as largest. Elements of 8 bytes have no keys
/// here; size < 2^31.
struct Sort {
  DType type;
  int64_t outer, size, inner;
  int64_t count;  ///< of each line only the first so many, <= size
  bool descending;

  /// Bytes of scratch that run needs for so many threads, aligned to 8.
  size_t scratch_bytes(int threads) const;
  /// Values and indices [outer, count, inner]; either may be null.
  void run(const void* x, void* values, int32_t* indices, std::byte* scratch, int threads) const;
};

}  // namespace tutti::kernels
