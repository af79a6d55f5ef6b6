// cuBLASLt and cuDNN as the library of a device.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "backends/cuda/cublas.h"
#include "backends/cuda/cudnn.h"
#include "sdk/library.h"
#include "sdk/plugin.h"

namespace tutti::cuda {

/// Products by cuBLASLt, convolutions by cuDNN, in the current context: what can be opened of them. `log` hears what is
/// missing and why; null where neither is there. TUTTI_CUDA_LIBRARIES=0 leaves both out: all kernels are rendered.
/// `driver_version`: no library for a newer major version is taken. `tf32`: f32 products and convolutions may use TF32.
/// `tuner` tries their calls and chooses among their algorithms; null: their own first ones, without activations.
std::unique_ptr<const sdk::Library> open_library(const std::function<void(const std::string&)>& log, int driver_version,
                                                 bool tf32 = false, std::shared_ptr<Tuner> tuner = nullptr);

/// Whether a session's options ask for TF32 ("precision" = "f32" or "tf32"). Throws Error(invalid) for other options.
bool wants_tf32(const sdk::Options& options);
/// The library of those two; either may be null, and then declines.
std::unique_ptr<const sdk::Library> join(std::shared_ptr<const Cublas> products,
                                         std::shared_ptr<const Cudnn> convolutions);

}  // namespace tutti::cuda
