// cuDNN's graph API in host memory: descriptors as they are set, and graphs of products, convolutions, pointwise
// operations and reductions computed node by node as cuDNN's documentation defines them. This program exports its
// functions, so cudnn-frontend finds them in dlopen(nullptr).
#pragma once
#include <cudnn.h>

#include <cstddef>
#include <map>

namespace tutti::cuda::fake {

struct GraphState {
  size_t configurations = 2;  ///< that the heuristics give
  int64_t workspace = 256;    ///< bytes of each
  size_t refused = 0;         ///< plans of the first so many configurations cannot be built
  bool fails = false;         ///< executing a plan fails
  bool loses_nan = false;     ///< ReLU makes numbers of NaN
  size_t descriptors = 0;     ///< alive now
  size_t executed = 0;        ///< plans
  size_t failed = 0;          ///< executions that did not fit their graph
  cudaStream_t stream = nullptr;
  /// Of configurations' engines, by their numbers.
  std::map<int64_t, cudnnBackendNumericalNote_t> notes = {};
  std::map<int64_t, cudnnBackendBehaviorNote_t> behaviors = {};
};
/// Fresh at every call.
GraphState& reset_graphs();

struct Descriptor;
/// Computes an operation graph's nodes. `pointers`: by uid. `loses_nan`: as in GraphState. Throws std::runtime_error
/// for what it lacks.
void compute(const Descriptor& graph, const int64_t* uids, void* const* pointers, size_t count, bool loses_nan);

}  // namespace tutti::cuda::fake
