// A device's primary context, shared by all sessions of this process.
#pragma once
#include <atomic>
#include <mutex>
#include <new>
#include <string>

#include "backends/cuda/api.h"

namespace tutti::cuda {

class Context;

/// Makes a context current in this thread and restores the previous one on destruction, so that programs that use CUDA
/// themselves are not disturbed.
class Current {
 public:
  /// Throws Error if the driver fails, Error(device_lost) if the context is lost.
  explicit Current(Context& context);
  /// For cleanup, where failures on a lost device are ignored.
  Current(Context& context, std::nothrow_t) noexcept;
  ~Current();
  Current(const Current&) = delete;

 private:
  CUresult enter(CUcontext context) noexcept;

  const CudaApi& api_;
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

/// Retains the context during its lifetime. A lost context stays lost for the rest of the process: every call fails,
/// also in other sessions.
class Context {
 public:
  /// Throws Error if the driver fails. `name`: device name for messages.
  Context(const CudaApi& api, CUdevice device, std::string name);
  ~Context();
  Context(const Context&) = delete;

  const CudaApi& api() const { return api_; }
  const std::string& name() const { return name_; }

  /// Throws the Error of a failed call, Error(device_lost) if the context is lost.
  void check(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS) fail(result, what);
  }
  [[noreturn]] void fail(CUresult result, const std::string& what);
  /// Marks the context as lost, so that it can no longer be entered.
  void lose(const std::string& why);

 private:
  friend class Current;
  CudaApi api_;
  CUdevice device_;
  std::string name_;
  CUcontext context_ = nullptr;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::string why_;  // reason of the loss
};

}  // namespace tutti::cuda
