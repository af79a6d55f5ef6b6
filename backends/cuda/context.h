// A device's primary context, which all sessions of this process share.
#pragma once
#include <atomic>
#include <mutex>
#include <new>
#include <string>

#include "backends/cuda/api.h"

namespace tutti::cuda {

class Context;

/// While it lives, a context is current in this thread; afterwards what was current before is again, so that a program
/// that uses CUDA itself is not disturbed.
class Current {
 public:
  /// Throws Error where the driver fails, Error(device_lost) once the context is lost.
  explicit Current(Context& context);
  /// For who cleans up: what fails on a lost device is of no interest.
  Current(Context& context, std::nothrow_t) noexcept;
  ~Current();
  Current(const Current&) = delete;

 private:
  CUresult enter(CUcontext context) noexcept;

  const CudaApi& api_;
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

/// Retained as long as this lives. An error that kills a context stays with it for the life of the process: then every
/// call fails, whoever makes it.
class Context {
 public:
  /// Throws Error where the driver fails. `name`: of the device, for messages.
  Context(const CudaApi& api, CUdevice device, std::string name);
  ~Context();
  Context(const Context&) = delete;

  const CudaApi& api() const { return api_; }
  const std::string& name() const { return name_; }

  /// Throws what a call's result stands for, Error(device_lost) for what kills the context.
  void check(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS) fail(result, what);
  }
  [[noreturn]] void fail(CUresult result, const std::string& what);
  /// From now on nobody can enter it.
  void lose(const std::string& why);

 private:
  friend class Current;
  CudaApi api_;
  CUdevice device_;
  std::string name_;
  CUcontext context_ = nullptr;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::string why_;  // it is lost
};

}  // namespace tutti::cuda
