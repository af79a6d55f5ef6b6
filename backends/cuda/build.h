// Compiles CUDA C to binaries.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "backends/cuda/api.h"
#include "sdk/driver.h"

namespace tutti::cuda {

struct Binary {
  std::vector<std::byte> code;
  std::string log;  ///< if `verbose`: registers, shared memory and spills reported by ptxas
};

/// Compiles a kernel: a cubin for "sm_90", PTX for "compute_90". Thread-safe. Throws Error(compile) with the compiler's
/// first error, after writing the source to a file named in the message.
Binary compile(const NvrtcApi& nvrtc, const sdk::KernelSource& source, const std::string& architecture,
               bool verbose = false);

}  // namespace tutti::cuda
