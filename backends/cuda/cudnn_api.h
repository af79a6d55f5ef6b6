// cuDNN's functions, opened at run time.
#pragma once
#include <cudnn.h>

#include <cstddef>

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
  void* library = nullptr;  ///< what dlopen gave; null: without the graph API
};

}  // namespace tutti::cuda
