// CUDA C to binaries.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "backends/cuda/api.h"
#include "sdk/driver.h"

namespace tutti::cuda {

struct Binary {
  std::vector<std::byte> code;
  std::string log;  ///< where asked for: registers, shared memory and spills, as ptxas says them
};

/// A kernel for an architecture: a cubin for "sm_90", PTX for "compute_90". Any thread. Throws Error(compile) with the
/// compiler's first error after writing the source to a file that the message names.
Binary compile(const NvrtcApi& nvrtc, const sdk::KernelSource& source, const std::string& architecture,
               bool verbose = false);

}  // namespace tutti::cuda
