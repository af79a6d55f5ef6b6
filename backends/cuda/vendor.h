// cuBLASLt and cuDNN as the library of a device.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "sdk/library.h"

namespace tutti::cuda {

/// Products by cuBLASLt, convolutions by cuDNN, in the current context: what can be opened of them. `log` hears what is
/// missing and why; null where neither is there. TUTTI_CUDA_LIBRARIES=0 leaves both out: all kernels are rendered.
std::unique_ptr<const sdk::Library> open_library(const std::function<void(const std::string&)>& log);

}  // namespace tutti::cuda
