// Kernels of the portable list on the software CUDA device, without a driver in between.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/api.h"
#include "tests/codegen/cases.h"
#include "tests/softcuda/memory.h"

namespace tutti::softcuda {

/// What a mutation test changes between NVRTC and the device.
struct Changes {
  std::function<std::string(const std::string& ptx)> text = {};
  std::function<void(const std::string& kernel, std::vector<int>& buffers)> arguments = {};
};

/// The outputs after the launches of `work`, every buffer an allocation of its exact size, results and scratch not
/// initialised. Throws Fault, InvalidPtx, or Error where NVRTC fails. `architecture`: "compute_90".
std::vector<codegen::cases::Array> run_kernels(const cuda::NvrtcApi& nvrtc, const std::string& architecture,
                                               const Checks& checks, const codegen::LaunchList& work,
                                               const std::vector<codegen::cases::Array>& inputs,
                                               const std::vector<codegen::cases::Array>& like,
                                               const Changes& changes = {});

}  // namespace tutti::softcuda
