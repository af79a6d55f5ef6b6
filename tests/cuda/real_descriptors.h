// The fakes on descriptors of the installed cuBLASLt and cuDNN: those create them and take their attributes, as without
// a GPU they can. What needs a handle is the fakes', on copies made of what the library says that it holds.
#pragma once
#include "backends/cuda/cublas.h"
#include "backends/cuda/cudnn.h"

namespace tutti::cuda::fake {

/// Throw Error(declined) if the library cannot be opened, Error(internal) where a descriptor does not hold what the
/// plugin relies on.
CublasApi cublas_with_real_descriptors();
CudnnApi cudnn_with_real_descriptors();

}  // namespace tutti::cuda::fake
