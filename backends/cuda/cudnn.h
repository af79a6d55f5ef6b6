// Convolutions through cuDNN 9, opened at run time; without it the portable kernels compute them.
#pragma once
#include <cudnn.h>

#include <memory>
#include <string>

#include "backends/cuda/tune.h"
#include "kernels/codegen/portable.h"
#include "sdk/library.h"

// clang-format off
#define TUTTI_CUDNN_FUNCTIONS(X)                                                                                       \
  X(cudnnCreate)                                                                                                       \
  X(cudnnDestroy) X(cudnnSetStream) X(cudnnGetVersion) X(cudnnGetCudartVersion) X(cudnnGetErrorString) X(cudnnCreateTensorDescriptor)           \
      X(cudnnDestroyTensorDescriptor) X(cudnnSetTensor4dDescriptor) X(cudnnCreateFilterDescriptor)                     \
          X(cudnnDestroyFilterDescriptor) X(cudnnSetFilter4dDescriptor) X(cudnnCreateConvolutionDescriptor)            \
              X(cudnnDestroyConvolutionDescriptor) X(cudnnSetConvolution2dDescriptor) X(cudnnSetConvolutionGroupCount) \
                  X(cudnnSetConvolutionMathType) X(cudnnCreateActivationDescriptor)                                    \
                      X(cudnnDestroyActivationDescriptor) X(cudnnSetActivationDescriptor)                              \
                          X(cudnnGetConvolutionForwardAlgorithm_v7) X(cudnnGetConvolutionBackwardDataAlgorithm_v7)     \
                              X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                         \
                                  X(cudnnGetConvolutionForwardWorkspaceSize) X(cudnnGetConvolutionBackwardDataWorkspaceSize) X(cudnnGetConvolutionBackwardFilterWorkspaceSize) X(cudnnConvolutionForward)                \
                                      X(cudnnConvolutionBiasActivationForward) X(cudnnConvolutionBackwardData)         \
                                          X(cudnnConvolutionBackwardFilter)
// clang-format on

namespace tutti::cuda {

struct CudnnApi {
#define TUTTI_CUDA_POINTER(name) decltype(&::name) name = nullptr;
  TUTTI_CUDNN_FUNCTIONS(TUTTI_CUDA_POINTER)
#undef TUTTI_CUDA_POINTER
};

/// A handle in the current context. Images are NCHW; f32 in strict f32 (or TF32, where made for it), f16 and bf16 with
/// f32 sums. Of the deterministic algorithms of cuDNN's own ranking whose workspace is at most 256 MiB, the tuner's
/// choice, else the first; those that transform their operands (FFT, Winograd) only for TF32, because their error is a
/// share of the largest result, not of each. An activation only where it hands NaN on. Throws Error(declined) where it
/// has none for a shape, and where a trial failed.
class Cudnn {
 public:
  /// Throws Error(declined) where the library cannot be opened, is made for a newer major version of CUDA than
  /// `driver_version` (13000 is 13.0), or refuses the device.
  static std::shared_ptr<const Cudnn> open(int driver_version, bool tf32 = false,
                                           std::shared_ptr<Tuner> tuner = nullptr);
  /// `tuner`: null: cuDNN's own first choices, untried, and no activations.
  explicit Cudnn(const CudnnApi& api, bool tf32 = false, std::shared_ptr<Tuner> tuner = nullptr);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;

  codegen::LaunchList conv(const codegen::Conv& p, const sdk::LibraryRequest& request = {}) const;
  codegen::LaunchList conv_dx(const codegen::Conv& p, const sdk::LibraryRequest& request = {}) const;
  codegen::LaunchList conv_dw(const codegen::Conv& p, const sdk::LibraryRequest& request = {}) const;
  std::string version() const;

 private:
  std::shared_ptr<const CudnnApi> api_;
  std::shared_ptr<Tuner> tuner_;
  cudnnHandle_t handle_ = nullptr;
  bool tf32_;
};

}  // namespace tutti::cuda
