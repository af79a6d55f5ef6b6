#include "backends/cuda/rendered_call.h"

namespace tutti::cuda {

RenderedCall::RenderedCall(const KernelMaker& kernels, const sdk::RenderedWork& work) {
  for (size_t k = 0; k < work.sources.size(); ++k) {
    const codegen::Launch& launch = work.list.launches[k];
    if (!launch.kernel || !work.sources[k].numbers.empty()) throw Error(Code::declined, "its kernels need a session");
    steps_.push_back({kernels.make(work.sources[k]), launch.groups, launch.buffers});
  }
}

void RenderedCall::run(CUstream stream, std::span<const CUdeviceptr> buffers) const {
  for (const Step& step : steps_) {
    std::vector<CUdeviceptr> at;
    for (int b : step.buffers) at.push_back(buffers[static_cast<size_t>(b)]);
    std::vector<void*> parameters;
    for (CUdeviceptr& a : at) parameters.push_back(&a);
    step.kernel->launch(stream, step.groups, parameters.data());
  }
}

}  // namespace tutti::cuda
