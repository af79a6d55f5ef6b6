// A cuBLASLt in host memory: a column-major product that obeys its descriptors, and refuses those that do not fit.
#pragma once
#include <map>
#include <string>

#include "backends/cuda/cublas.h"

namespace tutti::cuda::fake {

struct CublasState {
  std::map<std::string, cublasStatus_t> failing;  ///< calls that give this result
  int found = 1;                                  ///< algorithms that the ranking has
  size_t workspace = 0;                           ///< what its first one needs

  int descriptors = 0;  ///< alive now, of all kinds
  int products = 0;     ///< calls of cublasLtMatmul
  cublasComputeType_t compute = CUBLAS_COMPUTE_64F;
  size_t most_workspace = 0;  ///< that the ranking was allowed
  uint32_t schemes = ~0u;     ///< of reductions, likewise
};

/// The state that the functions work on, fresh at every call.
CublasState& reset_cublas();
CublasApi cublas();

}  // namespace tutti::cuda::fake
