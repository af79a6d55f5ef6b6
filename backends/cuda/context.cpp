#include "backends/cuda/context.h"

#include <fmt/format.h>

#include <utility>

namespace tutti::cuda {

Current::Current(Context& context) : api_(context.api_) {
  if (context.lost_) {
    std::lock_guard hold(context.mutex_);
    throw Error(Code::device_lost, context.why_,
                "start the program again; if the error persists, check `nvidia-smi` and the system log");
  }
  context.check(enter(context.context_), "making the context current");
}

Current::Current(Context& context, std::nothrow_t) noexcept : api_(context.api_) { enter(context.context_); }

CUresult Current::enter(CUcontext context) noexcept {
  if (CUresult result = api_.cuCtxGetCurrent(&before_); result != CUDA_SUCCESS || before_ == context) return result;
  CUresult result = api_.cuCtxSetCurrent(context);
  changed_ = result == CUDA_SUCCESS;
  return result;
}

Current::~Current() {
  if (changed_) api_.cuCtxSetCurrent(before_);
}

Context::Context(const CudaApi& api, CUdevice device, std::string name)
    : api_(api), device_(device), name_(std::move(name)) {
  check(api_.cuDevicePrimaryCtxRetain(&context_, device_), "opening the device");
}

Context::~Context() { api_.cuDevicePrimaryCtxRelease(device_); }

void Context::fail(CUresult result, const std::string& what) {
  Error error(code_of(result), fmt::format("cuda: {}: {}: {}", name_, what, result_text(api_, result)));
  if (error.code == Code::device_lost) lose(error.what());
  throw error;
}

void Context::lose(const std::string& why) {
  std::lock_guard hold(mutex_);
  if (!lost_) why_ = why;
  lost_ = true;
}

}  // namespace tutti::cuda
