// A fake device with its context current, and a tuner on it.
#pragma once
#include <memory>

#include "backends/cuda/context.h"
#include "backends/cuda/device_timer.h"
#include "backends/cuda/devices.h"
#include "backends/cuda/tune.h"
#include "backends/cuda/vendor.h"
#include "tests/cuda/fake_cublas.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/fake_cudnn.h"

namespace tutti::cuda::fake {

struct FakeDevice {
  State& seen = reset();
  CublasState& products = reset_cublas();
  CudnnState& convolutions = reset_cudnn();
  std::shared_ptr<const Libraries> libraries = start(cuda(), nvrtc());
  std::shared_ptr<Context> context = libraries->context(0, "Fake GPU 0");

  /// Tries calls on the device; with `host`, chooses algorithms and remembers them.
  std::shared_ptr<Tuner> tuner(const sdk::Host& host = sdk::Host()) const {
    return std::make_shared<Tuner>(std::make_unique<DeviceTimer>(context), host, "a GPU");
  }
  /// Both libraries; their handles are made in the device's context.
  std::unique_ptr<const sdk::Library> library(bool tf32 = false, const sdk::Host& host = sdk::Host()) const {
    Current in(*context);
    auto t = tuner(host);
    auto kernels = std::make_shared<KernelMaker>(libraries, context, "sm_90", "a GPU", host);
    return join(std::make_shared<Cublas>(cublas(), tf32, t, kernels),
                std::make_shared<Cudnn>(cudnn(), tf32, t, kernels));
  }
};

}  // namespace tutti::cuda::fake
