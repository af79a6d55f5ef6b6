// What the kernels know of the device that they are rendered for.
#pragma once
#include <cstdint>

#include "kernels/codegen/language.h"

namespace tutti::codegen {

/// Facts that choose a kernel's family and its text.
struct Target {
  const Language* language = &Language::opencl_c();  ///< what the device's compiler takes
  bool cpu_like = false;      ///< work-items are loop iterations of a CPU: few fat ones, no barriers
  bool byte_storage = true;   ///< 8-bit elements can be written one by one
  bool half_storage = false;  ///< 16-bit elements likewise
  uint32_t max_local = 256;   ///< work-items per group
  uint32_t subgroup = 1;
  uint64_t local_bytes = 32768;  ///< shared memory per group
  uint32_t compute_units = 1;
  uint64_t max_texels = 0;  ///< of a float4 texel buffer where reading through one is worth it (lavapipe, whose storage
                            ///< buffers are read in a loop over the subgroup); 0: never
  uint64_t max_buffer_bytes = ~0ull;  ///< the largest range that one kernel argument may cover
  uint32_t max_rounds = ~0u;  ///< loop rounds of one work-item, all its loops together: beyond that they quietly end
                              ///< (lavapipe: 65535, nested and following loops counted together, unrolled ones not)

  /// Whether the language lets the work-items of a warp of 32 read each other's registers (SHUFFLE_DOWN).
  bool shuffles() const { return subgroup == 32 && language->shuffles; }
  /// Whether numbers are data of a launch: OpenCL on CPUs compiles for a tenth of a second per kernel, and knowing a
  /// size gains little there.
  bool shares_texts() const { return cpu_like && !language->subgroups; }
};

}  // namespace tutti::codegen
