// Copies rows to another distance from each other.
#pragma once
#include <cstdint>
#include <map>
#include <memory>

#include "backends/cuda/kernel_maker.h"

namespace tutti::cuda {

/// Rows of `width` elements: to[r * to_pitch + c] = from[r * from_pitch + c], and 0 for c from `width` to `to_pitch`.
/// Pitches are at least `width`. At most 2^31 elements on either side.
struct RowCopy {
  uint32_t rows = 0, width = 0, from_pitch = 0, to_pitch = 0;
};

/// A kernel that moves 16 bytes at once wherever rows begin. Both sides start at multiples of 16 bytes; neither is read
/// or written past its last element.
class RowCopier {
 public:
  /// For elements of 2 or 4 bytes. Throws like KernelMaker::make.
  RowCopier(const KernelMaker& kernels, size_t element_bytes);
  /// Enqueues or records the copy. Throws Error.
  void run(CUstream stream, CUdeviceptr from, CUdeviceptr to, const RowCopy& copy) const;

 private:
  uint32_t per_chunk_;
  std::shared_ptr<const LoadedKernel> kernel_;
};

}  // namespace tutti::cuda
