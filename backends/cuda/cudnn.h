// Convolutions and attention through cuDNN 9, opened at run time; without it portable kernels are used.
#pragma once
#include <memory>
#include <string>

#include "backends/cuda/cudnn_api.h"
#include "backends/cuda/cudnn_convolution.h"
#include "backends/cuda/cudnn_graph.h"
#include "backends/cuda/kernel_maker.h"
#include "backends/cuda/tune.h"
#include "kernels/codegen/portable.h"
#include "sdk/library.h"

namespace tutti::cuda {

/// A handle in the current context. Images are NCHW; f32 in strict f32 (or TF32 if enabled), f16 and bf16 with f32
/// sums. Channels-last convolutions are calls of the graph API; convolution_graph() says which are supported. Uses the
/// tuner's choice, else the first, of the deterministic algorithms in cuDNN's ranking with at most 256 MiB workspace;
/// algorithms that transform operands (FFT, Winograd) only for TF32, because their error is relative to the largest
/// result, not to each. Activations only if they propagate NaN. Throws Error(declined) if it has no algorithm for a
/// shape, for a failed trial, and in strict f32 if the request's portable kernels are faster.
class Cudnn {
 public:
  /// The library's functions. Throws Error(declined) if it cannot be opened.
  static CudnnApi load();
  /// Throws Error(declined) if the library cannot be opened, is built for a newer major version of CUDA than
  /// `driver_version` (13000 is 13.0), or refuses the device.
  static std::shared_ptr<const Cudnn> open(int driver_version, bool tf32 = false,
                                           std::shared_ptr<Tuner> tuner = nullptr,
                                           std::shared_ptr<const KernelMaker> kernels = nullptr, int capability = 0);
  /// What `open` does with an opened library's functions. Throws like open.
  static std::shared_ptr<const Cudnn> start(const CudnnApi& api, int driver_version, bool tf32 = false,
                                            std::shared_ptr<Tuner> tuner = nullptr,
                                            std::shared_ptr<const KernelMaker> kernels = nullptr, int capability = 0);
  /// A null `tuner` uses cuDNN's first choices without a trial, and no activations. Null `kernels`: it is not
  /// compared with portable kernels.
  /// `capability` (90 for sm_90): for attention and channels-last convolutions; 0: neither.
  explicit Cudnn(const CudnnApi& api, bool tf32 = false, std::shared_ptr<Tuner> tuner = nullptr,
                 std::shared_ptr<const KernelMaker> kernels = nullptr, int capability = 0);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;

  codegen::LaunchList conv(const codegen::Conv& p, const sdk::LibraryRequest& request = {}) const;
  codegen::LaunchList conv_dx(const codegen::Conv& p, const sdk::LibraryRequest& request = {}) const;
  codegen::LaunchList conv_dw(const codegen::Conv& p, const sdk::LibraryRequest& request = {}) const;
  /// See sdk::Library; attention_graph() says what is supported. Declined if the request's portable kernels are faster.
  codegen::LaunchList attention(const codegen::Attention& a, bool lse, const sdk::LibraryRequest& request = {}) const;
  codegen::LaunchList attention_grad(const codegen::Attention& a, const sdk::LibraryRequest& request = {}) const;
  std::string version() const;

 private:
  codegen::LaunchList convolution(const codegen::Conv& p, ConvKind kind, const sdk::LibraryRequest& request) const;

  std::shared_ptr<const CudnnApi> api_;
  std::shared_ptr<Tuner> tuner_;
  std::shared_ptr<const KernelMaker> kernels_;
  cudnnHandle_t handle_ = nullptr;
  bool tf32_;
  std::unique_ptr<const CudnnGraphs> graphs_;  // null: none
};

}  // namespace tutti::cuda
