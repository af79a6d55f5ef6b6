#include "backends/cuda/kernel_maker.h"

#include "backends/cuda/build.h"
#include "sdk/cache_key.h"

namespace tutti::cuda {

LoadedKernel::~LoadedKernel() {
  Current in(*context_, std::nothrow);
  context_->api().cuModuleUnload(module_);
}

void LoadedKernel::launch(CUstream stream, std::array<uint32_t, 3> groups, void** parameters) const {
  context_->check(context_->api().cuLaunchKernel(function_, groups[0], groups[1], groups[2], local_[0], local_[1],
                                                 local_[2], 0, stream, parameters, nullptr),
                  "launching a kernel");
}

std::shared_ptr<const LoadedKernel> KernelMaker::make(const sdk::KernelSource& source) const {
  Current in(*context_);
  const CudaApi& api = context_->api();
  std::string key = sdk::cache_key("rendered", sdk::kernel_text(identity_, source));
  CUmodule module = nullptr;
  std::vector<std::byte> binary = host_.cache_get(key);
  if (binary.empty() || api.cuModuleLoadData(&module, binary.data()) != CUDA_SUCCESS) {
    binary = compile(libraries_->nvrtc, source, architecture_).code;
    context_->check(api.cuModuleLoadData(&module, binary.data()), "loading a kernel");
    host_.cache_put(key, binary);
  }
  CUfunction function = nullptr;
  CUresult found = api.cuModuleGetFunction(&function, module, source.entry.c_str());
  if (found != CUDA_SUCCESS) api.cuModuleUnload(module);
  context_->check(found, "loading a kernel");
  return std::make_shared<LoadedKernel>(context_, module, function, source.local);
}

}  // namespace tutti::cuda
