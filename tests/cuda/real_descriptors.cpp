#include "tests/cuda/real_descriptors.h"

#include <array>
#include <cstring>

#include "backends/cuda/call.h"
#include "backends/cuda/open.h"
#include "tests/cuda/fake_cublas.h"
#include "tests/cuda/fake_cudnn.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace tutti::cuda::fake {
namespace {

constexpr int any_driver = 99000;  // newer than every library

/// A further function of the library that has `known`.
template <class F>
void take_beside(const void* known, const char* name, F& function) {
  Dl_info info = {};
  if (!dladdr(known, &info)) throw Error(Code::internal, fmt::format("no library has {}", name));
  take(dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD), name, info.dli_fname, function);
}

template <class Status>
void check(Status status, const char* what) {
  if (status != Status{}) throw Error(Code::internal, fmt::format("{}: status {}", what, static_cast<int>(status)));
}
void require(bool right, const char* what) {
  if (!right) throw Error(Code::internal, fmt::format("a descriptor of the library: {}", what));
}

// ---- cuBLASLt

// clang-format off
#define TUTTI_CUBLAS_GETTERS(X) \
  X(cublasLtMatmulDescGetAttribute) X(cublasLtMatrixLayoutGetAttribute) X(cublasLtMatmulPreferenceGetAttribute)
// clang-format on

struct RealCublas : CublasApi {
#define TUTTI_POINTER(name) decltype(&::name) name = nullptr;
  TUTTI_CUBLAS_GETTERS(TUTTI_POINTER)

  RealCublas() : CublasApi(Cublas::load(any_driver)) {
#define TUTTI_TAKE(name) take_beside(reinterpret_cast<void*>(cublasLtCreate), #name, name);
    TUTTI_CUBLAS_GETTERS(TUTTI_TAKE)
  }
};
const RealCublas& real_cublas() {
  static const RealCublas opened;
  return opened;
}
const CublasApi& fake_cublas() {
  static const CublasApi functions = cublas();
  return functions;
}

/// An attribute as the library holds it.
struct Held {
  std::array<std::byte, 64> bytes;
  size_t size = 0;

  template <class T>
  T as() const {
    T value;
    require(size == sizeof value, "an attribute of another size");
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
};
template <class Get, class Of, class Which>
Held held(Get get, Of descriptor, Which which) {
  Held value;
  check(get(descriptor, which, nullptr, 0, &value.size), "the size of an attribute");
  require(value.size <= value.bytes.size(), "a long attribute");
  check(get(descriptor, which, value.bytes.data(), value.size, &value.size), "an attribute");
  return value;
}

auto copied(cublasLtMatmulDesc_t from) {
  auto of = [&](auto which) { return held(real_cublas().cublasLtMatmulDescGetAttribute, from, which); };
  auto compute = of(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE).as<cublasComputeType_t>();
  auto scale = of(CUBLASLT_MATMUL_DESC_SCALE_TYPE).as<cudaDataType_t>();
  require(scale == CUDA_R_32F, "alpha and beta are f32");
  require(of(CUBLASLT_MATMUL_DESC_POINTER_MODE).as<cublasLtPointerMode_t>() == CUBLASLT_POINTER_MODE_HOST,
          "alpha and beta are on the host");
  cublasLtMatmulDesc_t to = nullptr;
  check(fake_cublas().cublasLtMatmulDescCreate(&to, compute, scale), "a copy");
  Owned owned(to, fake_cublas().cublasLtMatmulDescDestroy);
  for (auto which : {CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB, CUBLASLT_MATMUL_DESC_EPILOGUE,
                     CUBLASLT_MATMUL_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                     CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
                     CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE}) {
    Held value = of(which);
    check(fake_cublas().cublasLtMatmulDescSetAttribute(to, which, value.bytes.data(), value.size), "a copy");
  }
  return owned;
}

auto copied(cublasLtMatrixLayout_t from) {
  auto of = [&](auto which) { return held(real_cublas().cublasLtMatrixLayoutGetAttribute, from, which); };
  require(of(CUBLASLT_MATRIX_LAYOUT_ORDER).as<cublasLtOrder_t>() == CUBLASLT_ORDER_COL, "matrices are column-major");
  cublasLtMatrixLayout_t to = nullptr;
  check(fake_cublas().cublasLtMatrixLayoutCreate(
            &to, of(CUBLASLT_MATRIX_LAYOUT_TYPE).as<cudaDataType_t>(), of(CUBLASLT_MATRIX_LAYOUT_ROWS).as<uint64_t>(),
            of(CUBLASLT_MATRIX_LAYOUT_COLS).as<uint64_t>(), of(CUBLASLT_MATRIX_LAYOUT_LD).as<int64_t>()),
        "a copy");
  Owned owned(to, fake_cublas().cublasLtMatrixLayoutDestroy);
  for (auto which : {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET}) {
    Held value = of(which);
    check(fake_cublas().cublasLtMatrixLayoutSetAttribute(to, which, value.bytes.data(), value.size), "a copy");
  }
  return owned;
}

auto copied(cublasLtMatmulPreference_t from) {
  cublasLtMatmulPreference_t to = nullptr;
  check(fake_cublas().cublasLtMatmulPreferenceCreate(&to), "a copy");
  Owned owned(to, fake_cublas().cublasLtMatmulPreferenceDestroy);
  for (auto which : {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK}) {
    Held value = held(real_cublas().cublasLtMatmulPreferenceGetAttribute, from, which);
    check(fake_cublas().cublasLtMatmulPreferenceSetAttribute(to, which, value.bytes.data(), value.size), "a copy");
  }
  return owned;
}

// ---- cuDNN

// clang-format off
#define TUTTI_CUDNN_GETTERS(X)                                                                   \
  X(cudnnGetTensor4dDescriptor) X(cudnnGetFilter4dDescriptor) X(cudnnGetConvolution2dDescriptor) \
      X(cudnnGetConvolutionGroupCount) X(cudnnGetConvolutionMathType) X(cudnnGetActivationDescriptor)
// clang-format on

struct RealCudnn : CudnnApi {
  TUTTI_CUDNN_GETTERS(TUTTI_POINTER)

  RealCudnn() : CudnnApi(Cudnn::load()) {
#undef TUTTI_TAKE
#define TUTTI_TAKE(name) take_beside(reinterpret_cast<void*>(cudnnCreate), #name, name);
    TUTTI_CUDNN_GETTERS(TUTTI_TAKE)
  }
};
const RealCudnn& real_cudnn() {
  static const RealCudnn opened;
  return opened;
}
const CudnnApi& fake_cudnn() {
  static const CudnnApi functions = cudnn();
  return functions;
}

auto copied(cudnnTensorDescriptor_t from) {
  cudnnDataType_t type;
  int n, c, h, w, step_n, step_c, step_h, step_w;
  check(real_cudnn().cudnnGetTensor4dDescriptor(from, &type, &n, &c, &h, &w, &step_n, &step_c, &step_h, &step_w),
        "cudnnGetTensor4dDescriptor");
  require(step_w == 1 && step_h == w && step_c == h * w && step_n == c * h * w, "images are NCHW without gaps");
  cudnnTensorDescriptor_t to = nullptr;
  check(fake_cudnn().cudnnCreateTensorDescriptor(&to), "a copy");
  Owned owned(to, fake_cudnn().cudnnDestroyTensorDescriptor);
  check(fake_cudnn().cudnnSetTensor4dDescriptor(to, CUDNN_TENSOR_NCHW, type, n, c, h, w), "a copy");
  return owned;
}

auto copied(cudnnFilterDescriptor_t from) {
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  int k, c, h, w;
  check(real_cudnn().cudnnGetFilter4dDescriptor(from, &type, &format, &k, &c, &h, &w), "cudnnGetFilter4dDescriptor");
  cudnnFilterDescriptor_t to = nullptr;
  check(fake_cudnn().cudnnCreateFilterDescriptor(&to), "a copy");
  Owned owned(to, fake_cudnn().cudnnDestroyFilterDescriptor);
  check(fake_cudnn().cudnnSetFilter4dDescriptor(to, type, format, k, c, h, w), "a copy");
  return owned;
}

auto copied(cudnnConvolutionDescriptor_t from) {
  int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, groups;
  cudnnConvolutionMode_t mode;
  cudnnDataType_t sums;
  cudnnMathType_t math;
  check(real_cudnn().cudnnGetConvolution2dDescriptor(from, &pad_h, &pad_w, &stride_h, &stride_w, &dilation_h,
                                                     &dilation_w, &mode, &sums),
        "cudnnGetConvolution2dDescriptor");
  check(real_cudnn().cudnnGetConvolutionGroupCount(from, &groups), "cudnnGetConvolutionGroupCount");
  check(real_cudnn().cudnnGetConvolutionMathType(from, &math), "cudnnGetConvolutionMathType");
  cudnnConvolutionDescriptor_t to = nullptr;
  check(fake_cudnn().cudnnCreateConvolutionDescriptor(&to), "a copy");
  Owned owned(to, fake_cudnn().cudnnDestroyConvolutionDescriptor);
  check(fake_cudnn().cudnnSetConvolution2dDescriptor(to, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, mode,
                                                     sums),
        "a copy");
  check(fake_cudnn().cudnnSetConvolutionGroupCount(to, groups), "a copy");
  check(fake_cudnn().cudnnSetConvolutionMathType(to, math), "a copy");
  return owned;
}

auto copied(cudnnActivationDescriptor_t from) {
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double ceiling;
  check(real_cudnn().cudnnGetActivationDescriptor(from, &mode, &nan, &ceiling), "cudnnGetActivationDescriptor");
  cudnnActivationDescriptor_t to = nullptr;
  check(fake_cudnn().cudnnCreateActivationDescriptor(&to), "a copy");
  Owned owned(to, fake_cudnn().cudnnDestroyActivationDescriptor);
  check(fake_cudnn().cudnnSetActivationDescriptor(to, mode, nan, ceiling), "a copy");
  return owned;
}

// ---- the tables

/// All other arguments.
template <class T>
T copied(T argument) {
  return argument;
}

/// Sets a function of a library to the fake's on copies of the descriptors.
template <auto fakes, auto function, class Api, class R, class... A>
void bridge(Api& api, R (*)(A...)) {
  api.*function = [](A... arguments) -> R { return (fakes().*function)(copied(arguments)...); };
}

}  // namespace

CublasApi cublas_with_real_descriptors() {
  CublasApi api = real_cublas();
  const CublasApi& f = fake_cublas();
  api.cublasLtCreate = f.cublasLtCreate;
  api.cublasLtDestroy = f.cublasLtDestroy;
#define TUTTI_BRIDGE(name) bridge<fake_cublas, &CublasApi::name>(api, api.name);
  TUTTI_BRIDGE(cublasLtMatmulAlgoGetHeuristic)
  TUTTI_BRIDGE(cublasLtMatmulAlgoCheck)
  TUTTI_BRIDGE(cublasLtMatmul)
#undef TUTTI_BRIDGE
  return api;
}

CudnnApi cudnn_with_real_descriptors() {
  CudnnApi api = real_cudnn();
  const CudnnApi& f = fake_cudnn();
  api.cudnnCreate = f.cudnnCreate;
  api.cudnnDestroy = f.cudnnDestroy;
  api.cudnnSetStream = f.cudnnSetStream;
#define TUTTI_BRIDGE(name) bridge<fake_cudnn, &CudnnApi::name>(api, api.name);
  TUTTI_BRIDGE(cudnnGetConvolutionForwardAlgorithm_v7)
  TUTTI_BRIDGE(cudnnGetConvolutionBackwardDataAlgorithm_v7)
  TUTTI_BRIDGE(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
  TUTTI_BRIDGE(cudnnGetConvolutionForwardWorkspaceSize)
  TUTTI_BRIDGE(cudnnGetConvolutionBackwardDataWorkspaceSize)
  TUTTI_BRIDGE(cudnnGetConvolutionBackwardFilterWorkspaceSize)
  TUTTI_BRIDGE(cudnnConvolutionForward)
  TUTTI_BRIDGE(cudnnConvolutionBiasActivationForward)
  TUTTI_BRIDGE(cudnnConvolutionBackwardData)
  TUTTI_BRIDGE(cudnnConvolutionBackwardFilter)
#undef TUTTI_BRIDGE
  return api;
}

}  // namespace tutti::cuda::fake
