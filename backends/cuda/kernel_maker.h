// Kernels of our own inside the calls of a library: compiled, loaded and launched without a session.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "backends/cuda/context.h"
#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::cuda {

/// One kernel, loaded in a context.
class LoadedKernel {
 public:
  LoadedKernel(std::shared_ptr<Context> context, CUmodule module, CUfunction function, std::array<uint32_t, 3> local)
      : context_(std::move(context)), module_(module), function_(function), local_(local) {}
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;

  /// Enqueues (or, during stream capture, records) it; `parameters` are those of cuLaunchKernel. Throws Error.
  void launch(CUstream stream, std::array<uint32_t, 3> groups, void** parameters) const;

 private:
  std::shared_ptr<Context> context_;
  CUmodule module_;
  CUfunction function_;
  std::array<uint32_t, 3> local_;
};

/// Compiles kernels for a device. Binaries are kept in the host's cache, with those of sessions.
class KernelMaker {
 public:
  /// `identity`: Traits::identity of the device.
  KernelMaker(std::shared_ptr<const Libraries> libraries, std::shared_ptr<Context> context, std::string architecture,
              std::string identity, const sdk::Host& host)
      : libraries_(std::move(libraries)),
        context_(std::move(context)),
        architecture_(std::move(architecture)),
        identity_(std::move(identity)),
        host_(host) {}

  /// Throws Error(compile), or the driver's error.
  std::shared_ptr<const LoadedKernel> make(const sdk::KernelSource& source) const;

 private:
  std::shared_ptr<const Libraries> libraries_;
  std::shared_ptr<Context> context_;
  std::string architecture_, identity_;
  sdk::Host host_;
};

}  // namespace tutti::cuda
