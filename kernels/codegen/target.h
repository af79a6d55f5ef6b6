// Properties of the device that kernels are rendered for.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/codegen/language.h"

namespace tutti::codegen {

/// Sizes of the matrices that a subgroup multiplies at once: m x k by k x n.
struct CooperativeShape {
  uint32_t m = 0, n = 0, k = 0;
};

/// Properties that determine a kernel's family and text.
struct Target {
  const Language* language = &Language::opencl_c();  ///< input language of the device's compiler
  bool cpu_like = false;      ///< work-items are loop iterations on a CPU: few large ones, no barriers
  bool byte_storage = true;   ///< 8-bit elements can be written individually
  bool half_storage = false;  ///< 16-bit elements can be written individually
  uint32_t max_local = 256;   ///< work-items per group
  uint32_t subgroup = 1;
  uint64_t local_bytes = 32768;  ///< shared memory per group
  uint32_t compute_units = 1;
  uint64_t max_texels = 0;  ///< of a float4 texel buffer where reading through one is worth it (lavapipe, whose storage
                            ///< buffers are read in a loop over the subgroup); 0: never
  uint32_t max_arguments = 16;        ///< maximum number of buffers of one kernel
  uint64_t max_buffer_bytes = ~0ull;  ///< largest range of one kernel argument
  bool exact = false;                 ///< kernels of exact numerics: docs/EXACT.md
  bool rounded_division = false;      ///< / and sqrt of a KernelSource::exact are correctly rounded; else div_, sqrt_
  bool tensor_cores = false;          ///< the device executes Language::tensor_cores
  /// The device multiplies such matrices of f16 with f32 sums in Language::cooperative, in groups of whole subgroups.
  std::vector<CooperativeShape> cooperative = {};
  uint32_t max_rounds = ~0u;  ///< loop rounds of one work-item, all its loops together: beyond that they quietly end
                              ///< (lavapipe: 65535, nested and following loops counted together, unrolled ones not)

  /// Whether work-items of a warp of 32 can read each other's registers (SHUFFLE_DOWN).
  bool shuffles() const { return subgroup == 32 && language->shuffles; }
  /// Whether small launches that follow each other become one (serial.h).
  bool runs_serially() const { return cpu_like && !exact && language->part; }
  /// Whether numbers are launch data instead of literals: OpenCL on CPUs needs 0.1 s to compile a kernel, and constant
  /// sizes gain little there.
  bool shares_texts() const { return cpu_like && !language->subgroups; }
};

}  // namespace tutti::codegen
