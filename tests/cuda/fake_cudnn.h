// A cuDNN in host memory: convolutions as loops that obey their descriptors, alpha and beta, and a ranking of
// algorithms whose first one is not deterministic, whose next one transforms (Winograd, with its error), and whose
// workspaces are not those that a call needs. It works in the current context only, the first use of an algorithm by a
// handle allocates, and an activation must not ask for NaN, as cuDNN's reference says of
// cudnnConvolutionBiasActivationForward.
#pragma once
#include <map>
#include <string>

#include "backends/cuda/cudnn.h"

namespace tutti::cuda::fake {

struct CudnnState {
  std::map<std::string, cudnnStatus_t> failing;  ///< calls that give this result
  bool deterministic = true;                     ///< whether the ranking's other algorithms are
  bool third = false;                            ///< whether there is another one that does not transform
  bool relu_takes_nan = false;                   ///< whether the fused ReLU obeys CUDNN_PROPAGATE_NAN
  size_t workspace = 0;                          ///< what each needs
  std::map<int, double> costs;                   ///< milliseconds of an algorithm
  size_t built_for = 13000;                      ///< the CUDA version

  int descriptors = 0;   ///< alive now, of all kinds
  int convolutions = 0;  ///< calls that compute
  int used = -1;         ///< the algorithm of the newest one
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudaStream_t stream = nullptr;  ///< that a handle was given last
};

/// The state that the functions work on, fresh at every call.
CudnnState& reset_cudnn();
CudnnApi cudnn();

}  // namespace tutti::cuda::fake
