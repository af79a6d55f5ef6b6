#include "tests/cuda/fake_cudnn.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "core/base/dtype.h"
#include "tests/cuda/fake_cuda.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace tutti::cuda::fake {
namespace {

std::unique_ptr<CudnnState> current = std::make_unique<CudnnState>();

struct Handle {
  cudaStream_t stream = nullptr;
  std::set<int> loaded;  // algorithms
};

/// Of images (n, c, h, w) and of weights (filters, channels of a group, kernel h, kernel w).
struct Tensor {
  cudnnDataType_t type = CUDNN_DATA_DOUBLE;
  int64_t n = 0, c = 0, h = 0, w = 0;

  DType dtype() const {
    return type == CUDNN_DATA_FLOAT ? DType::f32 : type == CUDNN_DATA_HALF ? DType::f16 : DType::bf16;
  }
  size_t elements() const { return static_cast<size_t>(n * c * h * w); }
  size_t at(int64_t i, int64_t j, int64_t y, int64_t x) const {
    return static_cast<size_t>(((i * c + j) * h + y) * w + x);
  }
  std::vector<double> load(const void* data) const {
    std::vector<double> all(elements());
    for (size_t i = 0; i < all.size(); ++i) all[i] = load_element(dtype(), data, i);
    return all;
  }
  void store(void* data, const std::vector<double>& all) const {
    for (size_t i = 0; i < all.size(); ++i) store_element(dtype(), data, i, all[i]);
  }
};
struct Movement {
  int pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, groups = 1;
};
struct Activation {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
};

template <class T>
T& of(const void* handle) {
  return *static_cast<T*>(const_cast<void*>(handle));
}
template <class T, class Handle>
cudnnStatus_t create(const char* name, Handle* handle) {
  if (auto at = current->failing.find(name); at != current->failing.end()) return at->second;
  *handle = reinterpret_cast<Handle>(new T{});
  ++current->descriptors;
  return CUDNN_STATUS_SUCCESS;
}
template <class T>
cudnnStatus_t destroy(const void* handle) {
  delete static_cast<const T*>(handle);
  --current->descriptors;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set(Tensor& t, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w) {
  if (format != CUDNN_TENSOR_NCHW || n < 1 || c < 1 || h < 1 || w < 1) return CUDNN_STATUS_BAD_PARAM;
  t = {type, n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}

bool fits(const Tensor& x, const Tensor& w, const Movement& m, const Tensor& y) {
  auto positions = [](int64_t size, int64_t kernel, int pad, int stride, int dilation) {
    return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  };
  return x.type == w.type && x.type == y.type && x.c == w.c * m.groups && y.c == w.n && x.n == y.n &&
         y.h == positions(x.h, w.h, m.pad_h, m.stride_h, m.dilation_h) &&
         y.w == positions(x.w, w.w, m.pad_w, m.stride_w, m.dilation_w);
}

/// visit(element of x, of w, of y) for every product of the convolution.
template <class F>
void each(const Tensor& x, const Tensor& w, const Movement& m, const Tensor& y, F visit) {
  int64_t filters = w.n / m.groups;
  for (int64_t n = 0; n < y.n; ++n)
    for (int64_t o = 0; o < y.c; ++o)
      for (int64_t row = 0; row < y.h; ++row)
        for (int64_t column = 0; column < y.w; ++column)
          for (int64_t i = 0; i < w.c; ++i)
            for (int64_t ky = 0; ky < w.h; ++ky)
              for (int64_t kx = 0; kx < w.w; ++kx) {
                int64_t at_y = row * m.stride_h - m.pad_h + ky * m.dilation_h;
                int64_t at_x = column * m.stride_w - m.pad_w + kx * m.dilation_w;
                if (at_y >= 0 && at_y < x.h && at_x >= 0 && at_x < x.w)
                  visit(x.at(n, o / filters * w.c + i, at_y, at_x), w.at(o, i, ky, kx), y.at(n, o, row, column));
              }
}

/// One call that computes alpha times `sums` plus beta times what is there, which `finish` changes: judged, counted,
/// and put into the stream.
struct Compute {
  const char* name;
  cudnnHandle_t handle;
  bool right;
  int algorithm;
  bool transforms;  ///< whether the algorithm does, and so errs by a part of the largest sum
  void* space;
  size_t bytes;
  const void *alpha, *beta;
  Tensor result;
  void* to;

  template <class Sums, class Finish>
  cudnnStatus_t operator()(Sums sums, Finish finish) const {
    if (auto at = current->failing.find(name); at != current->failing.end()) return at->second;
    if (!right || bytes < current->workspace || (bytes && !space)) return CUDNN_STATUS_BAD_PARAM;
    if (usable() != CUDA_SUCCESS) return CUDNN_STATUS_EXECUTION_FAILED;
    auto& h = of<Handle>(handle);
    if (h.loaded.insert(algorithm).second && unsafe_call() != CUDA_SUCCESS) return CUDNN_STATUS_INTERNAL_ERROR;
    ++current->convolutions;
    current->used = algorithm;
    CUresult sent = enqueue(h.stream, [call = *this, one = *static_cast<const float*>(alpha),
                                       kept = *static_cast<const float*>(beta), sums, finish] {
      if (call.space) std::memset(call.space, 0xA5, call.bytes);  // one that is somebody else's memory is noticed
      std::vector<double> out = sums(), before = kept != 0 ? call.result.load(call.to) : std::vector<double>();
      double largest = 0;
      for (double v : out) largest = std::max(largest, std::abs(v));
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = one * out[i] + (call.transforms ? 1e-3 * largest : 0) + (kept != 0 ? kept * before[i] : 0);
        finish(out, i);
      }
      call.result.store(call.to, out);
      if (auto cost = current->costs.find(call.algorithm); cost != current->costs.end()) state().clock += cost->second;
    });
    return sent == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
  }
  template <class Sums>
  cudnnStatus_t operator()(Sums sums) const {
    return (*this)(sums, [](std::vector<double>&, size_t) {});
  }
};

/// A ranking: an algorithm with atomics, one that transforms, a steady one twice with two math types, perhaps another
/// steady one. Memory is that of another math type than the convolution's.
template <class Perf, class Algorithm>
cudnnStatus_t rank(bool right, const std::vector<Algorithm>& algorithms, int* found, Perf* list) {
  if (!right) return CUDNN_STATUS_BAD_PARAM;
  *found = 0;
  for (Algorithm a : algorithms) {
    Perf& p = list[(*found)++];
    p = {};
    p.algo = a;
    p.memory = current->workspace / 2;
    p.determinism = *found > 1 && current->deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t workspace(size_t* bytes) {
  *bytes = current->workspace;
  return CUDNN_STATUS_SUCCESS;
}

void rankings(CudnnApi& f) {
  f.cudnnGetConvolutionForwardAlgorithm_v7 = [](cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t m,
                                                const cudnnTensorDescriptor_t y, const int, int* found,
                                                cudnnConvolutionFwdAlgoPerf_t* list) {
    std::vector<cudnnConvolutionFwdAlgo_t> all = {
        CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM};
    if (current->third) all.push_back(CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
    return rank(fits(of<Tensor>(x), of<Tensor>(w), of<Movement>(m), of<Tensor>(y)), all, found, list);
  };
  f.cudnnGetConvolutionBackwardDataAlgorithm_v7 =
      [](cudnnHandle_t, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t y,
         const cudnnConvolutionDescriptor_t m, const cudnnTensorDescriptor_t x, const int, int* found,
         cudnnConvolutionBwdDataAlgoPerf_t* list) {
        return rank<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
            fits(of<Tensor>(x), of<Tensor>(w), of<Movement>(m), of<Tensor>(y)),
            {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD,
             CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1},
            found, list);
      };
  f.cudnnGetConvolutionBackwardFilterAlgorithm_v7 =
      [](cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
         const cudnnConvolutionDescriptor_t m, const cudnnFilterDescriptor_t w, const int, int* found,
         cudnnConvolutionBwdFilterAlgoPerf_t* list) {
        return rank<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
            fits(of<Tensor>(x), of<Tensor>(w), of<Movement>(m), of<Tensor>(y)),
            {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
             CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1},
            found, list);
      };
  f.cudnnGetConvolutionForwardWorkspaceSize = [](cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                 const cudnnFilterDescriptor_t, const cudnnConvolutionDescriptor_t,
                                                 const cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgo_t,
                                                 size_t* bytes) { return workspace(bytes); };
  f.cudnnGetConvolutionBackwardDataWorkspaceSize = [](cudnnHandle_t, const cudnnFilterDescriptor_t,
                                                      const cudnnTensorDescriptor_t, const cudnnConvolutionDescriptor_t,
                                                      const cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgo_t,
                                                      size_t* bytes) { return workspace(bytes); };
  f.cudnnGetConvolutionBackwardFilterWorkspaceSize =
      [](cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
         const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t, cudnnConvolutionBwdFilterAlgo_t,
         size_t* bytes) { return workspace(bytes); };
}

void convolutions(CudnnApi& f) {
  f.cudnnConvolutionForward = [](cudnnHandle_t h, const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                 const void* x, const cudnnFilterDescriptor_t w_desc, const void* w,
                                 const cudnnConvolutionDescriptor_t m_desc, cudnnConvolutionFwdAlgo_t algorithm,
                                 void* space, size_t bytes, const void* beta, const cudnnTensorDescriptor_t y_desc,
                                 void* y) {
    Tensor tx = of<Tensor>(x_desc), tw = of<Tensor>(w_desc), ty = of<Tensor>(y_desc);
    Movement m = of<Movement>(m_desc);
    bool right = fits(tx, tw, m, ty) && algorithm != CUDNN_CONVOLUTION_FWD_ALGO_DIRECT;
    bool transforms = algorithm == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD;
    Compute compute{"cudnnConvolutionForward", h, right, algorithm, transforms, space, bytes, alpha, beta, ty, y};
    return compute([=] {
      std::vector<double> in = tx.load(x), weights = tw.load(w), out(ty.elements());
      each(tx, tw, m, ty, [&](size_t a, size_t b, size_t to) { out[to] += in[a] * weights[b]; });
      return out;
    });
  };
  f.cudnnConvolutionBiasActivationForward =
      [](cudnnHandle_t h, const void* alpha, const cudnnTensorDescriptor_t x_desc, const void* x,
         const cudnnFilterDescriptor_t w_desc, const void* w, const cudnnConvolutionDescriptor_t m_desc,
         cudnnConvolutionFwdAlgo_t algorithm, void* space, size_t bytes, const void* beta,
         const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t b_desc, const void* bias,
         const cudnnActivationDescriptor_t mode, const cudnnTensorDescriptor_t y_desc, void* y) {
        Tensor tx = of<Tensor>(x_desc), tw = of<Tensor>(w_desc), ty = of<Tensor>(y_desc), tb = of<Tensor>(b_desc);
        Movement m = of<Movement>(m_desc);
        auto activation = of<Activation>(mode);
        bool relu = activation.mode == CUDNN_ACTIVATION_RELU, keeps = activation.nan == CUDNN_PROPAGATE_NAN;
        if (keeps && !(relu && current->relu_takes_nan)) return CUDNN_STATUS_NOT_SUPPORTED;
        bool right = fits(tx, tw, m, ty) && tb.n == 1 && tb.h == 1 && tb.w == 1 && tb.c == ty.c && tb.type == ty.type &&
                     (relu || algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
        Compute compute{
            "cudnnConvolutionBiasActivationForward", h, right, algorithm, false, space, bytes, alpha, beta, ty, y};
        return compute(
            [=] {
              std::vector<double> in = tx.load(x), weights = tw.load(w), out(ty.elements());
              each(tx, tw, m, ty, [&](size_t a, size_t b, size_t to) { out[to] += in[a] * weights[b]; });
              return out;
            },
            [=](std::vector<double>& out, size_t i) {
              double& v = out[i];
              v += load_element(tb.dtype(), bias, i / static_cast<size_t>(ty.h * ty.w) % static_cast<size_t>(ty.c));
              if (relu && !(keeps && std::isnan(v))) v = v > 0 ? v : 0;
            });
      };
  f.cudnnConvolutionBackwardData = [](cudnnHandle_t h, const void* alpha, const cudnnFilterDescriptor_t w_desc,
                                      const void* w, const cudnnTensorDescriptor_t y_desc, const void* d,
                                      const cudnnConvolutionDescriptor_t m_desc,
                                      cudnnConvolutionBwdDataAlgo_t algorithm, void* space, size_t bytes,
                                      const void* beta, const cudnnTensorDescriptor_t x_desc, void* dx) {
    Tensor tx = of<Tensor>(x_desc), tw = of<Tensor>(w_desc), ty = of<Tensor>(y_desc);
    Movement m = of<Movement>(m_desc);
    bool transforms = algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD;
    bool right = fits(tx, tw, m, ty) && (transforms || algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
    Compute compute{"cudnnConvolutionBackwardData", h, right, algorithm, transforms, space, bytes, alpha, beta, tx, dx};
    return compute([=] {
      std::vector<double> cotangent = ty.load(d), weights = tw.load(w), out(tx.elements());
      each(tx, tw, m, ty, [&](size_t to, size_t b, size_t c) { out[to] += cotangent[c] * weights[b]; });
      return out;
    });
  };
  f.cudnnConvolutionBackwardFilter = [](cudnnHandle_t h, const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                        const void* x, const cudnnTensorDescriptor_t y_desc, const void* d,
                                        const cudnnConvolutionDescriptor_t m_desc,
                                        cudnnConvolutionBwdFilterAlgo_t algorithm, void* space, size_t bytes,
                                        const void* beta, const cudnnFilterDescriptor_t w_desc, void* dw) {
    Tensor tx = of<Tensor>(x_desc), tw = of<Tensor>(w_desc), ty = of<Tensor>(y_desc);
    Movement m = of<Movement>(m_desc);
    bool transforms = algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED;
    bool right = fits(tx, tw, m, ty) && (transforms || algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
    Compute compute{
        "cudnnConvolutionBackwardFilter", h, right, algorithm, transforms, space, bytes, alpha, beta, tw, dw};
    return compute([=] {
      std::vector<double> in = tx.load(x), cotangent = ty.load(d), out(tw.elements());
      each(tx, tw, m, ty, [&](size_t a, size_t to, size_t c) { out[to] += in[a] * cotangent[c]; });
      return out;
    });
  };
}

void descriptors(CudnnApi& f) {
  f.cudnnCreateTensorDescriptor = [](cudnnTensorDescriptor_t* d) {
    return create<Tensor>("cudnnCreateTensorDescriptor", d);
  };
  f.cudnnDestroyTensorDescriptor = [](cudnnTensorDescriptor_t d) { return destroy<Tensor>(d); };
  f.cudnnSetTensor4dDescriptor = [](cudnnTensorDescriptor_t d, cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                    int c, int h, int w) { return set(of<Tensor>(d), format, type, n, c, h, w); };
  f.cudnnCreateFilterDescriptor = [](cudnnFilterDescriptor_t* d) {
    return create<Tensor>("cudnnCreateFilterDescriptor", d);
  };
  f.cudnnDestroyFilterDescriptor = [](cudnnFilterDescriptor_t d) { return destroy<Tensor>(d); };
  f.cudnnSetFilter4dDescriptor = [](cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format, int n,
                                    int c, int h, int w) { return set(of<Tensor>(d), format, type, n, c, h, w); };
  f.cudnnCreateConvolutionDescriptor = [](cudnnConvolutionDescriptor_t* d) {
    return create<Movement>("cudnnCreateConvolutionDescriptor", d);
  };
  f.cudnnDestroyConvolutionDescriptor = [](cudnnConvolutionDescriptor_t d) { return destroy<Movement>(d); };
  f.cudnnSetConvolution2dDescriptor = [](cudnnConvolutionDescriptor_t d, int pad_h, int pad_w, int stride_h,
                                         int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                         cudnnDataType_t sums) {
    of<Movement>(d) = {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w};
    return mode == CUDNN_CROSS_CORRELATION && sums == CUDNN_DATA_FLOAT ? CUDNN_STATUS_SUCCESS
                                                                       : CUDNN_STATUS_NOT_SUPPORTED;
  };
  f.cudnnSetConvolutionGroupCount = [](cudnnConvolutionDescriptor_t d, int groups) {
    of<Movement>(d).groups = groups;
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnSetConvolutionMathType = [](cudnnConvolutionDescriptor_t, cudnnMathType_t math) {
    current->math = math;
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnCreateActivationDescriptor = [](cudnnActivationDescriptor_t* d) {
    return create<Activation>("cudnnCreateActivationDescriptor", d);
  };
  f.cudnnDestroyActivationDescriptor = [](cudnnActivationDescriptor_t d) { return destroy<Activation>(d); };
  f.cudnnSetActivationDescriptor = [](cudnnActivationDescriptor_t d, cudnnActivationMode_t mode,
                                      cudnnNanPropagation_t nan, double) {
    of<Activation>(d) = {mode, nan};
    return CUDNN_STATUS_SUCCESS;
  };
}

}  // namespace

CudnnState& reset_cudnn() {
  current = std::make_unique<CudnnState>();
  return *current;
}

CudnnApi cudnn() {
  CudnnApi f;
  f.cudnnCreate = [](cudnnHandle_t* h) {
    return usable() == CUDA_SUCCESS ? create<Handle>("cudnnCreate", h) : CUDNN_STATUS_NOT_INITIALIZED;
  };
  f.cudnnDestroy = [](cudnnHandle_t h) { return destroy<Handle>(h); };
  f.cudnnSetStream = [](cudnnHandle_t h, cudaStream_t s) {
    current->stream = of<Handle>(h).stream = s;
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnGetVersion = []() -> size_t { return 91900; };
  f.cudnnGetCudartVersion = []() -> size_t { return current->built_for; };
  f.cudnnGetErrorString = [](cudnnStatus_t) { return "as the test wanted"; };
  descriptors(f);
  rankings(f);
  convolutions(f);
  return f;
}

}  // namespace tutti::cuda::fake
