// Attention through cuDNN's graph API, in f16 and bf16 on compute capability 8.0 and later.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/cudnn_api.h"
#include "backends/cuda/tune.h"
#include "kernels/codegen/portable.h"

namespace tutti::cuda {

/// What cuDNN makes plans for.
struct GraphTarget {
  cudnnHandle_t handle = nullptr;
  int capability = 0;           ///< 90 for sm_90
  std::string properties = {};  ///< without a handle: the device as CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION
};

/// A graph and its plans, defined with cudnn-frontend.
struct BuiltGraph;

/// Makes calls for attention. Graphs are built once per description; plans are deterministic and use at most 1 GiB.
/// Throws Error(declined) with cuDNN's reason, for f32, masks and dropout (cuDNN draws other random numbers), for
/// operands that do not start at multiples of 16 bytes, and if Tutti was built without cudnn-frontend.
class CudnnAttention {
 public:
  /// `api.library` must be the same in all objects of a process.
  CudnnAttention(std::shared_ptr<const CudnnApi> api, GraphTarget target);

  /// Buffers: q, k, v, y, and lse if `lse`.
  std::shared_ptr<Tunable> forward(const codegen::Attention& a, bool lse) const;
  /// Buffers: q, k, v, dy, lse, delta (not read: cuDNN computes it from y), y, dq, dk, dv.
  std::shared_ptr<Tunable> backward(const codegen::Attention& a) const;

 private:
  /// The graph of this description, which `define` fills if it is new.
  std::shared_ptr<BuiltGraph> built(const std::string& description, DType dtype,
                                    const std::function<void(BuiltGraph&)>& define) const;

  std::shared_ptr<const CudnnApi> api_;
  GraphTarget target_;
  mutable std::mutex lock_;
  mutable std::map<std::string, std::shared_ptr<BuiltGraph>> built_;  // by description
};

}  // namespace tutti::cuda
