// Calls of cuDNN's graph API. Their graphs are defined with NVIDIA's cudnn-frontend, which only this file's source and
// those of attention and convolutions include; built without it, cudnn_no_frontend.cpp takes their place.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/cudnn_api.h"
#include "backends/cuda/tune.h"
#include "kernels/codegen/portable.h"

namespace cudnn_frontend::graph {
class Graph;
class Tensor_attributes;
}  // namespace cudnn_frontend::graph

namespace tutti::cuda {

/// What cuDNN makes plans for.
struct GraphTarget {
  cudnnHandle_t handle = nullptr;
  int capability = 0;           ///< 90 for sm_90
  std::string properties = {};  ///< without a handle: the device as CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION
};

/// Where a tensor of a graph lies.
struct GraphTensor {
  codegen::Operand lies;  ///< strides along `dims`, all positive
  std::array<int64_t, 4> dims;
  size_t buffer;  ///< of the call
};

/// A call as a graph. Buffers before those of `writes` are only read.
struct GraphWork {
  using Node = std::shared_ptr<cudnn_frontend::graph::Tensor_attributes>;

  std::string kind;  ///< what it computes: all that `define` depends on and the tensors do not tell
  std::vector<GraphTensor> reads, writes;
  int64_t most_space = 0;        ///< workspace of a plan in bytes
  size_t most_plans = SIZE_MAX;  ///< so many are built, of those that can be
  bool built_in = false;         ///< no plan that cuDNN compiles when it is built
  bool sums_products = false;    ///< no plan whose numbers differ from f32 sums of products (Winograd, FFT)
  bool activates = false;        ///< see Tunable
  /// Adds nodes to a graph that has the tensors of `reads`; gives those of `writes`.
  std::function<std::vector<Node>(cudnn_frontend::graph::Graph&, const std::vector<Node>& reads)> define;
};

/// A graph and its plans.
struct BuiltGraph;

/// Makes calls of graphs, from compute capability 8.0 on. A graph is built once per description. Plans are
/// deterministic, the fastest by cuDNN's heuristics first; sums are f32.
class CudnnGraphs {
 public:
  /// `api.library` must be the same in all objects of a process.
  CudnnGraphs(std::shared_ptr<const CudnnApi> api, GraphTarget target);

  /// Throws Error(declined) with cuDNN's reason, for operands that do not start at multiples of 16 bytes, below
  /// capability 8.0, and if Tutti was built without cudnn-frontend.
  std::shared_ptr<Tunable> call(const GraphWork& work) const;

 private:
  std::shared_ptr<BuiltGraph> built(const std::string& description, const GraphWork& work) const;

  std::shared_ptr<const CudnnApi> api_;
  GraphTarget target_;
  mutable std::mutex lock_;
  mutable std::map<std::string, std::shared_ptr<BuiltGraph>> built_;  // by description
};

}  // namespace tutti::cuda
