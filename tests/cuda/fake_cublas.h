// A cuBLASLt in host memory: a column-major product that obeys its descriptors, alpha and beta, and refuses those that
// do not fit. It works in the current context only, its ReLU turns NaN into 0 as the real one's is reported to, and the
// first use of an algorithm by a handle allocates, as loading a kernel may.
#pragma once
#include <map>
#include <set>
#include <string>

#include "backends/cuda/cublas.h"

namespace tutti::cuda::fake {

struct CublasState {
  std::map<std::string, cublasStatus_t> failing;  ///< calls that give this result
  int found = 1;                                  ///< algorithms that the ranking has, 1 …
  size_t workspace = 0;                           ///< what its first one needs; the second twice that, …
  std::map<uint64_t, double> costs;               ///< milliseconds of an algorithm
  double unaligned_cost = 0;                      ///< more, where columns are no multiples of 16 bytes apart
  bool close = false;                             ///< has no algorithm for columns with a distance from each other
  std::set<uint64_t> refused;                     ///< algorithms that a check refuses
  std::set<uint64_t> broken;                      ///< algorithms that fail when they run
  std::set<uint64_t> split;                       ///< algorithms that add partial sums, and round before the epilogue
  bool splits_always = false;                     ///< ranks these whatever reductions are allowed
  std::set<int> epilogues;                        ///< that the library lacks
  bool relu_keeps_nan = false;

  int descriptors = 0;  ///< alive now, of all kinds
  int rankings = 0;     ///< calls of cublasLtMatmulAlgoGetHeuristic
  int products = 0;     ///< calls of cublasLtMatmul
  uint64_t used = 0;    ///< the algorithm of the newest one
  int epilogue = 0;     ///< its epilogue
  cublasComputeType_t compute = CUBLAS_COMPUTE_64F;
  size_t most_workspace = 0;  ///< that the ranking was allowed
  uint32_t schemes = ~0u;     ///< of reductions, likewise
};

/// The state that the functions work on, fresh at every call.
CublasState& reset_cublas();
CublasApi cublas();

}  // namespace tutti::cuda::fake
