// Rendered kernels as a call, to time them beside a library's.
#pragma once
#include <vector>

#include "backends/cuda/call.h"
#include "backends/cuda/kernel_maker.h"
#include "sdk/rendered/cache.h"

namespace tutti::cuda {

/// The launches of a LaunchList on its buffers: inputs, results, scratch.
class RenderedCall : public Call {
 public:
  /// Compiles the kernels. Throws Error(declined) for launches that only a session can make, and like
  /// KernelMaker::make.
  RenderedCall(const KernelMaker& kernels, const sdk::RenderedWork& work);
  void run(CUstream stream, std::span<const CUdeviceptr> buffers) const override;

 private:
  struct Step {
    std::shared_ptr<const LoadedKernel> kernel;
    std::array<uint32_t, 3> groups;
    std::vector<int> buffers;
  };
  std::vector<Step> steps_;
};

}  // namespace tutti::cuda
