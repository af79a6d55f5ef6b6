#include "backends/cuda/cudnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/cuda/call.h"
#include "backends/cuda/open.h"

// The classic convolution calls: deprecated beside the graph API, but complete in cuDNN 9, and free of its compile
// time.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace tutti::cuda {
namespace {

constexpr size_t most_workspace = 256 << 20;

cudnnDataType_t type_of(DType t) {
  switch (t) {
    case DType::f32: return CUDNN_DATA_FLOAT;
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    default: throw Error(Code::declined, fmt::format("dtype {}", name(t)));
  }
}

int whole(int64_t n) {
  if (n > INT32_MAX) throw Error(Code::declined, "a dimension of 2^31 or more");
  return static_cast<int>(n);
}

/// The descriptors of one convolution and its algorithm.
class Convolution : public Call {
 public:
  enum class Kind { forward, images, weights };

  Convolution(std::shared_ptr<const CudnnApi> api, cudnnHandle_t handle, const dialect::Conv& p, Kind kind, bool tf32)
      : api_(std::move(api)), handle_(handle), kind_(kind), bias_(p.bias), tf32_(tf32) {
    try {
      describe(p);
      choose(p);
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~Convolution() override { destroy(); }
  Convolution(const Convolution&) = delete;

  size_t workspace() const { return workspace_; }

  /// forward: x, w[, bias], y; images: cotangent, w, dx; weights: x, cotangent, dw; then the workspace.
  void run(CUstream stream, std::span<const CUdeviceptr> buffers) const override {
    auto at = [&](size_t i) { return reinterpret_cast<void*>(buffers[i]); };
    size_t y = bias_ ? 3 : 2;
    void* space = workspace_ ? at(y + 1) : nullptr;
    float one = 1, zero = 0;
    check(api_->cudnnSetStream(handle_, stream), "cudnnSetStream", Code::internal);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (bias_)
      status =
          api_->cudnnConvolutionBiasActivationForward(handle_, &one, x_, at(0), w_, at(1), conv_, forward_, space,
                                                      workspace_, &zero, y_, at(y), b_, at(2), activation_, y_, at(y));
    else if (kind_ == Kind::forward)
      status = api_->cudnnConvolutionForward(handle_, &one, x_, at(0), w_, at(1), conv_, forward_, space, workspace_,
                                             &zero, y_, at(y));
    else if (kind_ == Kind::images)
      status = api_->cudnnConvolutionBackwardData(handle_, &one, w_, at(1), y_, at(0), conv_, images_, space,
                                                  workspace_, &zero, x_, at(y));
    else
      status = api_->cudnnConvolutionBackwardFilter(handle_, &one, x_, at(0), y_, at(1), conv_, weights_, space,
                                                    workspace_, &zero, w_, at(y));
    check(status, "a convolution", Code::internal);
  }

 private:
  void check(cudnnStatus_t status, const char* call, Code code = Code::declined) const {
    if (status != CUDNN_STATUS_SUCCESS)
      throw Error(code == Code::internal && status == CUDNN_STATUS_ALLOC_FAILED ? Code::no_memory : code,
                  fmt::format("cuDNN: {}: {}", call, api_->cudnnGetErrorString(status)));
  }

  void describe(const dialect::Conv& p) {
    cudnnDataType_t type = type_of(p.dtype);
    auto tensor = [&](cudnnTensorDescriptor_t& d, int64_t n, int64_t c, int64_t h, int64_t w) {
      check(api_->cudnnCreateTensorDescriptor(&d), "cudnnCreateTensorDescriptor");
      check(api_->cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, type, whole(n), whole(c), whole(h), whole(w)),
            "cudnnSetTensor4dDescriptor");
    };
    tensor(x_, p.batch, p.channels, p.h.size, p.w.size);
    tensor(y_, p.batch, p.filters, p.h.count, p.w.count);
    check(api_->cudnnCreateFilterDescriptor(&w_), "cudnnCreateFilterDescriptor");
    check(api_->cudnnSetFilter4dDescriptor(w_, type, CUDNN_TENSOR_NCHW, whole(p.filters), whole(p.channels / p.groups),
                                           whole(p.h.kernel), whole(p.w.kernel)),
          "cudnnSetFilter4dDescriptor");
    check(api_->cudnnCreateConvolutionDescriptor(&conv_), "cudnnCreateConvolutionDescriptor");
    check(api_->cudnnSetConvolution2dDescriptor(conv_, whole(p.h.padding), whole(p.w.padding), whole(p.h.stride),
                                                whole(p.w.stride), whole(p.h.dilation), whole(p.w.dilation),
                                                CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    check(api_->cudnnSetConvolutionGroupCount(conv_, whole(p.groups)), "cudnnSetConvolutionGroupCount");
    cudnnMathType_t math = p.dtype != DType::f32 ? CUDNN_TENSOR_OP_MATH
                           : tf32_               ? CUDNN_DEFAULT_MATH  // may use TF32
                                                 : CUDNN_FMA_MATH;
    check(api_->cudnnSetConvolutionMathType(conv_, math), "cudnnSetConvolutionMathType");
    if (!p.bias) return;
    tensor(b_, 1, p.filters, 1, 1);
    check(api_->cudnnCreateActivationDescriptor(&activation_), "cudnnCreateActivationDescriptor");
    check(api_->cudnnSetActivationDescriptor(activation_, p.relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                             CUDNN_PROPAGATE_NAN, 0),
          "cudnnSetActivationDescriptor");
  }

  /// The first of the ranking that gives the same bits at every run.
  template <class Perf, class Algorithm, class Ask>
  void first(Algorithm& algorithm, Ask&& ask, const char* call) {
    std::array<Perf, 10> ranking;
    int found = 0;
    check(ask(static_cast<int>(ranking.size()), &found, ranking.data()), call);
    for (int k = 0; k < found; ++k) {
      const Perf& p = ranking[static_cast<size_t>(k)];
      if (p.status != CUDNN_STATUS_SUCCESS || p.determinism != CUDNN_DETERMINISTIC || p.memory > most_workspace)
        continue;
      algorithm = p.algo;
      workspace_ = p.memory;
      return;
    }
    throw Error(Code::declined, "cuDNN has no deterministic algorithm for it");
  }

  void choose(const dialect::Conv& p) {
    if (p.bias && !p.relu) {  // cuDNN adds a bias alone by this algorithm only
      forward_ = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
      return check(api_->cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, conv_, y_, forward_, &workspace_),
                   "a convolution with bias");
    }
    if (kind_ == Kind::forward)
      first<cudnnConvolutionFwdAlgoPerf_t>(
          forward_,
          [&](int most, int* n, auto* list) {
            return api_->cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, conv_, y_, most, n, list);
          },
          "cudnnGetConvolutionForwardAlgorithm_v7");
    else if (kind_ == Kind::images)
      first<cudnnConvolutionBwdDataAlgoPerf_t>(
          images_,
          [&](int most, int* n, auto* list) {
            return api_->cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, w_, y_, conv_, x_, most, n, list);
          },
          "cudnnGetConvolutionBackwardDataAlgorithm_v7");
    else
      first<cudnnConvolutionBwdFilterAlgoPerf_t>(
          weights_,
          [&](int most, int* n, auto* list) {
            return api_->cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x_, y_, conv_, w_, most, n, list);
          },
          "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  }

  void destroy() {
    for (cudnnTensorDescriptor_t d : {x_, y_, b_})
      if (d) api_->cudnnDestroyTensorDescriptor(d);
    if (w_) api_->cudnnDestroyFilterDescriptor(w_);
    if (conv_) api_->cudnnDestroyConvolutionDescriptor(conv_);
    if (activation_) api_->cudnnDestroyActivationDescriptor(activation_);
  }

  std::shared_ptr<const CudnnApi> api_;
  cudnnHandle_t handle_;
  Kind kind_;
  bool bias_, tf32_;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr, b_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t conv_ = nullptr;
  cudnnActivationDescriptor_t activation_ = nullptr;
  cudnnConvolutionFwdAlgo_t forward_ = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  cudnnConvolutionBwdDataAlgo_t images_ = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
  cudnnConvolutionBwdFilterAlgo_t weights_ = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
  size_t workspace_ = 0;
};

dialect::Work work(const std::shared_ptr<const CudnnApi>& api, cudnnHandle_t handle, const dialect::Conv& p,
                   Convolution::Kind kind, bool tf32) {
  if (p.relu && !p.bias) throw Error(Code::declined, "relu without bias");
  auto call = std::make_shared<Convolution>(api, handle, p, kind, tf32);
  size_t workspace = call->workspace();
  return work_of(std::move(call), "cuDNN", p.bias ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 1, 2},
                 workspace);
}

}  // namespace

std::shared_ptr<const Cudnn> Cudnn::open(bool tf32) {
  std::string why;
  void* library = open_first(library_names("cudnn", {"9"}), why);
  if (!library) throw Error(Code::declined, fmt::format("cuDNN cannot be opened ({})", why), "install libcudnn9");
  CudnnApi api;
#define TUTTI_CUDA_TAKE(name) take(library, #name, "libcudnn.so", api.name);
  TUTTI_CUDNN_FUNCTIONS(TUTTI_CUDA_TAKE)
#undef TUTTI_CUDA_TAKE
  return std::make_shared<Cudnn>(api, tf32);
}

Cudnn::Cudnn(const CudnnApi& api, bool tf32) : api_(std::make_shared<CudnnApi>(api)), tf32_(tf32) {
  cudnnStatus_t status = api_->cudnnCreate(&handle_);
  if (status != CUDNN_STATUS_SUCCESS)
    throw Error(Code::declined, fmt::format("cudnnCreate: {}", api_->cudnnGetErrorString(status)));
}
Cudnn::~Cudnn() { api_->cudnnDestroy(handle_); }

std::string Cudnn::version() const {
  size_t v = api_->cudnnGetVersion();  // 91900 is 9.19.0
  return fmt::format("{}.{}", v / 10000, v / 100 % 100);
}

dialect::Work Cudnn::conv(const dialect::Conv& p) const {
  return work(api_, handle_, p, Convolution::Kind::forward, tf32_);
}
dialect::Work Cudnn::conv_dx(const dialect::Conv& p) const {
  return work(api_, handle_, p, Convolution::Kind::images, tf32_);
}
dialect::Work Cudnn::conv_dw(const dialect::Conv& p) const {
  return work(api_, handle_, p, Convolution::Kind::weights, tf32_);
}

}  // namespace tutti::cuda
