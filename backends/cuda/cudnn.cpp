#include "backends/cuda/cudnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backends/cuda/call.h"
#include "backends/cuda/cudnn_attention.h"
#include "backends/cuda/open.h"
#include "backends/cuda/rendered_call.h"
#include "backends/cuda/vendor_types.h"

// The classic convolution calls, of images in NCHW: deprecated in favour of the graph API, but complete in cuDNN 9 and
// without its compile time.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace tutti::cuda {
namespace {

int whole(int64_t n) {
  if (n > INT32_MAX) throw Error(Code::declined, "dimensions of 2^31 or more are not supported");
  return static_cast<int>(n);
}

/// Throws for a failed call: declined for this shape, or (`running`) an error.
[[noreturn]] void fail(const CudnnApi& api, cudnnStatus_t status, const char* call, bool running) {
  Code code = !running ? Code::declined : status == CUDNN_STATUS_ALLOC_FAILED ? Code::no_memory : Code::internal;
  throw Error(code, fmt::format("cuDNN: {}: {}", call, api.cudnnGetErrorString(status)));
}
void check(const CudnnApi& api, cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) fail(api, status, call, false);
}

using Images = Owned<cudnnTensorDescriptor_t, decltype(&cudnnDestroyTensorDescriptor)>;
using Weights = Owned<cudnnFilterDescriptor_t, decltype(&cudnnDestroyFilterDescriptor)>;
using Movement = Owned<cudnnConvolutionDescriptor_t, decltype(&cudnnDestroyConvolutionDescriptor)>;
using Activation = Owned<cudnnActivationDescriptor_t, decltype(&cudnnDestroyActivationDescriptor)>;

Images images(const CudnnApi& api, DType t, int64_t n, int64_t c, int64_t h, int64_t w) {
  cudnnTensorDescriptor_t d = nullptr;
  check(api, api.cudnnCreateTensorDescriptor(&d), "cudnnCreateTensorDescriptor");
  Images owned(d, api.cudnnDestroyTensorDescriptor);
  check(
      api,
      api.cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, vendor_types(t).dnn, whole(n), whole(c), whole(h), whole(w)),
      "cudnnSetTensor4dDescriptor");
  return owned;
}

Weights weights(const CudnnApi& api, const codegen::Conv& p) {
  cudnnFilterDescriptor_t d = nullptr;
  check(api, api.cudnnCreateFilterDescriptor(&d), "cudnnCreateFilterDescriptor");
  Weights owned(d, api.cudnnDestroyFilterDescriptor);
  check(api,
        api.cudnnSetFilter4dDescriptor(d, vendor_types(p.dtype).dnn, CUDNN_TENSOR_NCHW, whole(p.filters),
                                       whole(p.channels / p.groups), whole(p.h.kernel), whole(p.w.kernel)),
        "cudnnSetFilter4dDescriptor");
  return owned;
}

Movement movement(const CudnnApi& api, const codegen::Conv& p, bool tf32) {
  cudnnConvolutionDescriptor_t d = nullptr;
  check(api, api.cudnnCreateConvolutionDescriptor(&d), "cudnnCreateConvolutionDescriptor");
  Movement owned(d, api.cudnnDestroyConvolutionDescriptor);
  check(api,
        api.cudnnSetConvolution2dDescriptor(d, whole(p.h.padding), whole(p.w.padding), whole(p.h.stride),
                                            whole(p.w.stride), whole(p.h.dilation), whole(p.w.dilation),
                                            CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "cudnnSetConvolution2dDescriptor");
  check(api, api.cudnnSetConvolutionGroupCount(d, whole(p.groups)), "cudnnSetConvolutionGroupCount");
  cudnnMathType_t math = p.dtype != DType::f32 ? CUDNN_TENSOR_OP_MATH
                         : tf32                ? CUDNN_DEFAULT_MATH  // may use TF32
                                               : CUDNN_FMA_MATH;
  check(api, api.cudnnSetConvolutionMathType(d, math), "cudnnSetConvolutionMathType");
  return owned;
}

/// The reference of cudnnConvolutionBiasActivationForward allows only NOT_PROPAGATE_NAN. For IDENTITY this makes no
/// difference; for ReLU, PROPAGATE_NAN is requested, and ReLU is fused only if the library accepts it.
Activation activation(const CudnnApi& api, bool relu) {
  cudnnActivationDescriptor_t d = nullptr;
  check(api, api.cudnnCreateActivationDescriptor(&d), "cudnnCreateActivationDescriptor");
  Activation owned(d, api.cudnnDestroyActivationDescriptor);
  check(api,
        api.cudnnSetActivationDescriptor(d, relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                         relu ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN, 0),
        "cudnnSetActivationDescriptor");
  return owned;
}

/// One convolution or gradient with its algorithms.
class Convolution : public Tunable {
 public:
  Convolution(std::shared_ptr<const CudnnApi> api, cudnnHandle_t handle, const codegen::Conv& p, ConvKind kind,
              bool tf32)
      : api_(std::move(api)),
        handle_(handle),
        shape_(p),
        kind_(kind),
        tf32_(tf32),
        x_(images(*api_, p.dtype, p.batch, p.channels, p.h.size, p.w.size)),
        y_(images(*api_, p.dtype, p.batch, p.filters, p.h.count, p.w.count)),
        w_(weights(*api_, p)),
        conv_(movement(*api_, p, tf32)) {
    if (p.bias) {
      b_.emplace(images(*api_, p.dtype, 1, p.filters, 1, 1));
      activation_.emplace(activation(*api_, p.relu));
    }
    rank();
  }

  /// forward: x, w[, bias], y; images: cotangent, w, dx; weights: x, cotangent, dw; then the workspace.
  void run(CUstream stream, std::span<const CUdeviceptr> buffers) const override {
    auto at = [&](size_t i) { return reinterpret_cast<void*>(buffers[i]); };
    size_t y = inputs(), bytes = workspace();
    void* space = bytes ? at(y + 1) : nullptr;
    float one = 1, zero = 0;
    cudnnStatus_t status = api_->cudnnSetStream(handle_, stream);
    if (status != CUDNN_STATUS_SUCCESS) fail(*api_, status, "cudnnSetStream", true);
    int algorithm = algorithms_[selected_].number;
    if (shape_.bias)
      status = api_->cudnnConvolutionBiasActivationForward(
          handle_, &one, x_, at(0), w_, at(1), conv_, static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), space, bytes,
          &zero, y_, at(y), *b_, at(2), *activation_, y_, at(y));
    else if (kind_ == ConvKind::forward)
      status = api_->cudnnConvolutionForward(handle_, &one, x_, at(0), w_, at(1), conv_,
                                             static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), space, bytes, &zero, y_,
                                             at(y));
    else if (kind_ == ConvKind::images)
      status = api_->cudnnConvolutionBackwardData(handle_, &one, w_, at(1), y_, at(0), conv_,
                                                  static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), space, bytes,
                                                  &zero, x_, at(y));
    else
      status = api_->cudnnConvolutionBackwardFilter(handle_, &one, x_, at(0), y_, at(1), conv_,
                                                    static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), space,
                                                    bytes, &zero, w_, at(y));
    if (status != CUDNN_STATUS_SUCCESS) fail(*api_, status, "a convolution", true);
  }
  void leave_stream() const override { api_->cudnnSetStream(handle_, nullptr); }
  size_t inputs() const override { return shape_.bias ? 3 : 2; }

  // ---- Tunable
  size_t candidates() const override { return algorithms_.size(); }
  void select(size_t candidate) override { selected_ = candidate; }
  size_t workspace() const override { return algorithms_[selected_].workspace; }
  std::vector<uint64_t> buffer_bytes() const override {
    const codegen::Conv& p = shape_;
    auto bytes = [&](int64_t elements) { return static_cast<uint64_t>(elements) * size_of(p.dtype); };
    uint64_t x = bytes(p.batch * p.channels * p.h.size * p.w.size),
             y = bytes(p.batch * p.filters * p.h.count * p.w.count);
    uint64_t w = bytes(p.filters * (p.channels / p.groups) * p.h.kernel * p.w.kernel);
    if (kind_ == ConvKind::images) return {y, w, x};
    if (kind_ == ConvKind::weights) return {x, y, w};
    return p.bias ? std::vector<uint64_t>{x, w, bytes(p.filters), y} : std::vector<uint64_t>{x, w, y};
  }
  DType dtype() const override { return shape_.dtype; }
  bool activates() const override { return shape_.relu; }
  std::string description() const override {
    const codegen::Conv& p = shape_;
    auto axis = [](const WindowAxis& a) {
      return fmt::format("{}/{} stride {} padding {} dilation {}", a.size, a.kernel, a.stride, a.padding, a.dilation);
    };
    constexpr const char* kinds[] = {"conv", "conv dx", "conv dw"};
    return fmt::format("cuDNN {} {} {} images {}x{} filters {} groups {} height {} width {}{}{}",
                       api_->cudnnGetVersion(), kinds[static_cast<size_t>(kind_)],
                       tf32_ && p.dtype == DType::f32 ? "tf32" : name(p.dtype), p.batch, p.channels, p.filters,
                       p.groups, axis(p.h), axis(p.w), p.bias ? " bias" : "", p.relu ? " relu" : "");
  }
  std::vector<std::byte> saved() const override {
    auto at = std::as_bytes(std::span(&algorithms_[selected_].number, 1));
    return {at.begin(), at.end()};
  }
  bool restore(std::span<const std::byte> algorithm) override {
    int number = 0;
    if (algorithm.size() != sizeof number) return false;
    std::memcpy(&number, algorithm.data(), sizeof number);
    for (size_t k = 0; k < algorithms_.size(); ++k)
      if (algorithms_[k].number == number) return selected_ = k, true;
    return false;
  }

 private:
  struct Algorithm {
    int number;
    size_t workspace;
  };

  /// Whether an algorithm computes results directly from products and sums of the operands, without transforms.
  static bool direct(cudnnConvolutionFwdAlgo_t a) { return a <= CUDNN_CONVOLUTION_FWD_ALGO_DIRECT; }
  static bool direct(cudnnConvolutionBwdDataAlgo_t a) { return a <= CUDNN_CONVOLUTION_BWD_DATA_ALGO_1; }
  static bool direct(cudnnConvolutionBwdFilterAlgo_t a) {
    return a <= CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 || a == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
  }

  cudnnStatus_t needed(cudnnConvolutionFwdAlgo_t a, size_t* bytes) const {
    return api_->cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, conv_, y_, a, bytes);
  }
  cudnnStatus_t needed(cudnnConvolutionBwdDataAlgo_t a, size_t* bytes) const {
    return api_->cudnnGetConvolutionBackwardDataWorkspaceSize(handle_, w_, y_, conv_, x_, a, bytes);
  }
  cudnnStatus_t needed(cudnnConvolutionBwdFilterAlgo_t a, size_t* bytes) const {
    return api_->cudnnGetConvolutionBackwardFilterWorkspaceSize(handle_, x_, y_, conv_, w_, a, bytes);
  }

  /// Adds an algorithm with its workspace for this convolution's math type; the size in a ranking may be for another
  /// math type.
  template <class Algorithm>
  void add(Algorithm a) {
    size_t bytes = 0;
    if (needed(a, &bytes) == CUDNN_STATUS_SUCCESS && bytes <= size_t{most_convolution_space})
      algorithms_.push_back({static_cast<int>(a), bytes});
  }

  /// Adds the deterministic algorithms of a ranking, without duplicates.
  template <class Perf, class Ask>
  void take(Ask&& ask, const char* call) {
    std::array<Perf, 10> ranking;
    int found = 0;
    check(*api_, ask(static_cast<int>(ranking.size()), &found, ranking.data()), call);
    bool transforms = tf32_ && shape_.dtype == DType::f32;
    for (int k = 0; k < found; ++k) {
      const Perf& p = ranking[static_cast<size_t>(k)];
      if (p.status != CUDNN_STATUS_SUCCESS || p.determinism != CUDNN_DETERMINISTIC) continue;
      if (!transforms && !direct(p.algo)) continue;
      if (std::none_of(algorithms_.begin(), algorithms_.end(), [&](auto& a) { return a.number == p.algo; }))
        add(p.algo);
    }
    if (algorithms_.empty())
      throw Error(
          Code::declined,
          fmt::format("cuDNN has no deterministic algorithm for this convolution{} with a workspace of at most {} MiB",
                      transforms ? "" : " that sums products", most_convolution_space >> 20));
  }

  void rank() {
    if (shape_.bias && !shape_.relu) {  // the only algorithm in cuDNN for a bias without activation
      add(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
      if (algorithms_.empty()) throw Error(Code::declined, "cuDNN has no workspace for a convolution with bias");
      return;
    }
    if (kind_ == ConvKind::forward)
      take<cudnnConvolutionFwdAlgoPerf_t>(
          [&](int most, int* n, auto* list) {
            return api_->cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, conv_, y_, most, n, list);
          },
          "cudnnGetConvolutionForwardAlgorithm_v7");
    else if (kind_ == ConvKind::images)
      take<cudnnConvolutionBwdDataAlgoPerf_t>(
          [&](int most, int* n, auto* list) {
            return api_->cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, w_, y_, conv_, x_, most, n, list);
          },
          "cudnnGetConvolutionBackwardDataAlgorithm_v7");
    else
      take<cudnnConvolutionBwdFilterAlgoPerf_t>(
          [&](int most, int* n, auto* list) {
            return api_->cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x_, y_, conv_, w_, most, n, list);
          },
          "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  }

  std::shared_ptr<const CudnnApi> api_;
  cudnnHandle_t handle_;
  codegen::Conv shape_;
  ConvKind kind_;
  bool tf32_;
  Images x_, y_;
  Weights w_;
  Movement conv_;
  std::optional<Images> b_;  // with a bias
  std::optional<Activation> activation_;
  std::vector<Algorithm> algorithms_;
  size_t selected_ = 0;
};

/// Throws Error(declined) if the portable kernels that `make` gives are faster. `products`: multiply-adds.
template <class Make>
void compare(Tunable& call, double products, const Make& make, Tuner& tuner, const KernelMaker& kernels,
             const sdk::LibraryRequest& request) {
  const sdk::Traits& traits = *request.portable;
  sdk::RenderedWork work;
  try {
    work = sdk::rendered(traits, make(traits));
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    return;
  }
  // Multiply-adds per second of a kernel that is not worth a comparison, which takes time to compile: about a third of
  // what multiprocessors with 128 lanes do.
  double fast = traits.compute_units * 128.0 * 5e8;
  Rival rival{
      {}, work.list.scratch_bytes, products / fast, [&] { return std::make_unique<RenderedCall>(kernels, work); }};
  for (const sdk::KernelSource& source : work.sources) rival.text += source.text;
  tuner.compare(call, rival, request);
}

/// The launch of a call whose algorithm the tuner chooses; if `compares`, only if it is faster than `make`'s kernels.
template <class Make>
codegen::LaunchList tuned(std::shared_ptr<Tunable> call, double products, bool compares, const Make& make, Tuner* tuner,
                          const KernelMaker* kernels, const sdk::LibraryRequest& request) {
  compares = compares && kernels && request.portable;
  if (tuner && (compares || !request.portable)) tuner->choose(*call, request);
  if (tuner && compares) compare(*call, products, make, *tuner, *kernels, request);
  size_t buffers = call->buffer_bytes().size(), workspace = call->workspace();
  return sdk::launch_of(std::shared_ptr<const Call>(std::move(call)), "cuDNN", buffers, workspace);
}

Error no_graphs() { return {Code::declined, "this cuDNN has no graph API for the device"}; }

}  // namespace

CudnnApi Cudnn::load() {
  std::string why;
  void* library = open_first(library_names("cudnn", {"9"}), why);
  if (!library) throw Error(Code::declined, fmt::format("cuDNN cannot be opened ({})", why), "install libcudnn9");
  CudnnApi api;
#define TUTTI_CUDA_TAKE(name) take(library, #name, "libcudnn.so", api.name);
  TUTTI_CUDNN_FUNCTIONS(TUTTI_CUDA_TAKE)
#undef TUTTI_CUDA_TAKE
  api.library = library;
  return api;
}

std::shared_ptr<const Cudnn> Cudnn::open(int driver_version, bool tf32, std::shared_ptr<Tuner> tuner,
                                         std::shared_ptr<const KernelMaker> kernels, int capability) {
  return start(load(), driver_version, tf32, std::move(tuner), std::move(kernels), capability);
}

std::shared_ptr<const Cudnn> Cudnn::start(const CudnnApi& api, int driver_version, bool tf32,
                                          std::shared_ptr<Tuner> tuner, std::shared_ptr<const KernelMaker> kernels,
                                          int capability) {
  int built_for = static_cast<int>(api.cudnnGetCudartVersion()) / 1000;
  if (built_for > driver_version / 1000)
    throw Error(
        Code::declined,
        fmt::format("the driver supports CUDA {}, but this cuDNN needs CUDA {}", driver_version / 1000, built_for),
        fmt::format("install cuDNN 9 for CUDA {}", driver_version / 1000));
  return std::make_shared<Cudnn>(api, tf32, std::move(tuner), std::move(kernels), capability);
}

Cudnn::Cudnn(const CudnnApi& api, bool tf32, std::shared_ptr<Tuner> tuner, std::shared_ptr<const KernelMaker> kernels,
             int capability)
    : api_(std::make_shared<CudnnApi>(api)), tuner_(std::move(tuner)), kernels_(std::move(kernels)), tf32_(tf32) {
  check(*api_, api_->cudnnCreate(&handle_), "cudnnCreate");
  if (api_->library && capability > 0) graphs_ = std::make_unique<CudnnGraphs>(api_, GraphTarget{handle_, capability});
}
Cudnn::~Cudnn() { api_->cudnnDestroy(handle_); }

std::string Cudnn::version() const {
  size_t v = api_->cudnnGetVersion();  // 91900 is 9.19.0
  return fmt::format("{}.{}", v / 10000, v / 100 % 100);
}

codegen::LaunchList Cudnn::convolution(const codegen::Conv& p, ConvKind kind,
                                       const sdk::LibraryRequest& request) const {
  if (p.relu && !p.bias) throw Error(Code::declined, "ReLU without bias is not supported");
  if (p.relu && !tuner_)
    throw Error(Code::declined, "without autotuning it is not known whether its activation propagates NaN");
  if (p.channels_last && !graphs_) throw no_graphs();
  std::shared_ptr<Tunable> call;
  if (p.channels_last)
    call = graphs_->call(convolution_graph(p, kind));
  else
    call = std::make_shared<Convolution>(api_, handle_, p, kind, tf32_);
  int64_t window = p.channels / p.groups * p.h.kernel * p.w.kernel;
  double products = static_cast<double>(p.batch * p.filters * p.h.count * p.w.count) * static_cast<double>(window);
  auto make = [&](const sdk::Traits& traits) {
    return kind == ConvKind::forward  ? codegen::conv(traits, p)
           : kind == ConvKind::images ? codegen::conv_dx(traits, p)
                                      : codegen::conv_dw(traits, p);
  };
  bool compares = p.dtype == DType::f32 && !tf32_ && !p.channels_last;  // there are no portable ones of channels-last
  return tuned(std::move(call), products, compares, make, tuner_.get(), kernels_.get(), request);
}
codegen::LaunchList Cudnn::conv(const codegen::Conv& p, const sdk::LibraryRequest& request) const {
  return convolution(p, ConvKind::forward, request);
}
codegen::LaunchList Cudnn::conv_dx(const codegen::Conv& p, const sdk::LibraryRequest& request) const {
  return convolution(p, ConvKind::images, request);
}
codegen::LaunchList Cudnn::conv_dw(const codegen::Conv& p, const sdk::LibraryRequest& request) const {
  return convolution(p, ConvKind::weights, request);
}

namespace {
/// Multiply-adds of attention's two products.
double products_of(const codegen::Attention& a) {
  return static_cast<double>(a.batch * a.heads * a.rows) * static_cast<double>(a.keys * (a.depth + a.width));
}
}  // namespace

codegen::LaunchList Cudnn::attention(const codegen::Attention& a, bool lse, const sdk::LibraryRequest& request) const {
  if (!graphs_) throw no_graphs();
  auto make = [&](const sdk::Traits& traits) { return codegen::attention(traits, a, lse); };
  return tuned(graphs_->call(attention_graph(a, lse)), products_of(a), true, make, tuner_.get(), kernels_.get(),
               request);
}
codegen::LaunchList Cudnn::attention_grad(const codegen::Attention& a, const sdk::LibraryRequest& request) const {
  if (!graphs_) throw no_graphs();
  auto make = [&](const sdk::Traits& traits) { return codegen::attention_grad(traits, a, {true, true, true}); };
  return tuned(graphs_->call(attention_grad_graph(a)), 2 * products_of(a), true, make, tuner_.get(), kernels_.get(),
               request);
}

}  // namespace tutti::cuda
