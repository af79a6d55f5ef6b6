// A CUDA driver whose only device interprets PTX: the rules of tests/cuda/fake_cuda.h, with kernels that compute.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/api.h"
#include "tests/softcuda/memory.h"

namespace tutti::softcuda {

/// What the environment asks for.
struct Settings {
  int major = 9;      ///< SOFTCUDA_MAJOR, 7 or 9: capability 7.9 or 9.9, so that NVRTC makes PTX for compute_75 or 90
  Checks checks;      ///< SOFTCUDA_CHECK
  uint64_t seed = 0;  ///< SOFTCUDA_SEED: not 0: random orders that the rules allow
  uint64_t most_instructions = 1ull << 32;  ///< SOFTCUDA_INSTRUCTIONS, of a warp between two barriers
  uint64_t devices = 1;                     ///< SOFTCUDA_DEVICES: how many there are, 1 to 8, for ranks with one each
  bool report = false;                      ///< SOFTCUDA_REPORT: prints launches and times of kernels at the end
};
/// Throws std::invalid_argument naming the variable, its value and what is allowed.
Settings settings_from_environment();

/// Makes the driver anew, without memory, streams and errors, and returns its functions.
cuda::CudaApi open(const Settings& settings);
/// See work.h.
bool touch(CUdeviceptr at, size_t bytes, bool written);
/// Text of the newest fault or refused PTX; "" without.
const std::string& last_fault();

}  // namespace tutti::softcuda
