// cuBLASLt and cuDNN as a device's sdk::Library.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "backends/cuda/cublas.h"
#include "backends/cuda/cudnn.h"
#include "sdk/library.h"
#include "sdk/plugin.h"

namespace tutti::cuda {

/// Opens cuBLASLt for products and cuDNN for convolutions and attention in the current context, as far as they exist.
/// `log` receives what is missing and why; returns null if both are missing. TUTTI_CUDA_LIBRARIES=0 disables both, so
/// that all kernels are rendered. `driver_version`: libraries for a newer major version are skipped. `tf32`: f32
/// products and convolutions may use TF32. `tuner` tests calls and chooses algorithms; null: the libraries' first
/// choices, without activations. `kernels` makes kernels of our own within calls; null: none. `capability` (90 for
/// sm_90): for attention; 0: none.
std::unique_ptr<const sdk::Library> open_library(const std::function<void(const std::string&)>& log, int driver_version,
                                                 bool tf32 = false, std::shared_ptr<Tuner> tuner = nullptr,
                                                 std::shared_ptr<const KernelMaker> kernels = nullptr,
                                                 int capability = 0);

/// Whether a session's options enable TF32 ("precision" = "f32" or "tf32"). Throws Error(invalid) for other options.
bool wants_tf32(const sdk::Options& options);
/// Combines both; either may be null and then declines.
std::unique_ptr<const sdk::Library> join(std::shared_ptr<const Cublas> products, std::shared_ptr<const Cudnn> dnn);

}  // namespace tutti::cuda
