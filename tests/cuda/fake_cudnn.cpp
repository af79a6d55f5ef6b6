#include "tests/cuda/fake_cudnn.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/dtype.h"
#include "tests/cuda/fake_cuda.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace tutti::cuda::fake {
namespace {

std::unique_ptr<CudnnState> current = std::make_unique<CudnnState>();
cudaStream_t stream = nullptr;  // that of the handle

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
  auto places = [](int64_t size, int64_t kernel, int pad, int stride, int dilation) {
    return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  };
  return x.type == w.type && x.type == y.type && x.c == w.c * m.groups && y.c == w.n && x.n == y.n &&
         y.h == places(x.h, w.h, m.pad_h, m.stride_h, m.dilation_h) &&
         y.w == places(x.w, w.w, m.pad_w, m.stride_w, m.dilation_w);
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

/// One call that computes: judged, counted, and put into the stream.
template <class F>
cudnnStatus_t compute(const char* name, bool right, int algorithm, void* space, size_t bytes, F work) {
  if (auto at = current->failing.find(name); at != current->failing.end()) return at->second;
  if (!right || bytes < current->workspace || (bytes && !space)) return CUDNN_STATUS_BAD_PARAM;
  ++current->convolutions;
  current->used = algorithm;
  enqueue(stream, [=] {
    if (space) std::memset(space, 0xA5, bytes);  // a workspace that is somebody else's memory is noticed
    work();
    if (auto cost = current->costs.find(algorithm); cost != current->costs.end()) state().clock += cost->second;
  });
  return CUDNN_STATUS_SUCCESS;
}

/// The algorithms of every ranking: the first one with atomics; the steady one twice, with two math types.
template <class Perf, class Algorithm>
cudnnStatus_t rank(bool right, Algorithm fast, Algorithm steady, Algorithm other, int* found, Perf* list) {
  if (!right) return CUDNN_STATUS_BAD_PARAM;
  *found = current->third ? 4 : 3;
  list[0] = {};
  list[0].algo = fast;
  list[0].determinism = CUDNN_NON_DETERMINISTIC;
  list[1] = {};
  list[1].algo = steady;
  list[1].memory = current->workspace / 2;  // with the other math type than the convolution's
  list[1].determinism = current->deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
  list[2] = list[1];
  list[2].memory = current->workspace;
  if (!current->third) return CUDNN_STATUS_SUCCESS;
  list[3] = list[2];
  list[3].algo = other;
  return CUDNN_STATUS_SUCCESS;
}

void rankings(CudnnApi& f) {
  f.cudnnGetConvolutionForwardAlgorithm_v7 = [](cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t m,
                                                const cudnnTensorDescriptor_t y, const int, int* found,
                                                cudnnConvolutionFwdAlgoPerf_t* list) {
    return rank(fits(of<Tensor>(x), of<Tensor>(w), of<Movement>(m), of<Tensor>(y)), CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, found, list);
  };
  f.cudnnGetConvolutionBackwardDataAlgorithm_v7 = [](cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                                     const cudnnTensorDescriptor_t y,
                                                     const cudnnConvolutionDescriptor_t m,
                                                     const cudnnTensorDescriptor_t x, const int, int* found,
                                                     cudnnConvolutionBwdDataAlgoPerf_t* list) {
    return rank(fits(of<Tensor>(x), of<Tensor>(w), of<Movement>(m), of<Tensor>(y)), CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
                CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, found, list);
  };
  f.cudnnGetConvolutionBackwardFilterAlgorithm_v7 = [](cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                       const cudnnTensorDescriptor_t y,
                                                       const cudnnConvolutionDescriptor_t m,
                                                       const cudnnFilterDescriptor_t w, const int, int* found,
                                                       cudnnConvolutionBwdFilterAlgoPerf_t* list) {
    return rank(fits(of<Tensor>(x), of<Tensor>(w), of<Movement>(m), of<Tensor>(y)), CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, found, list);
  };
  f.cudnnGetConvolutionForwardWorkspaceSize =
      [](cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnFilterDescriptor_t,
         const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgo_t, size_t* bytes) {
        *bytes = current->workspace;
        return CUDNN_STATUS_SUCCESS;
      };
}

void convolutions(CudnnApi& f) {
  f.cudnnConvolutionForward = [](cudnnHandle_t, const void*, const cudnnTensorDescriptor_t x_desc, const void* x,
                                 const cudnnFilterDescriptor_t w_desc, const void* w,
                                 const cudnnConvolutionDescriptor_t m_desc, cudnnConvolutionFwdAlgo_t algorithm,
                                 void* space, size_t bytes, const void*, const cudnnTensorDescriptor_t y_desc,
                                 void* y) {
    Tensor tx = of<Tensor>(x_desc), tw = of<Tensor>(w_desc), ty = of<Tensor>(y_desc);
    Movement m = of<Movement>(m_desc);
    bool right = fits(tx, tw, m, ty) && (algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
                                         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD);
    return compute("cudnnConvolutionForward", right, algorithm, space, bytes, [=] {
      std::vector<double> in = tx.load(x), weights = tw.load(w), out(ty.elements());
      each(tx, tw, m, ty, [&](size_t a, size_t b, size_t to) { out[to] += in[a] * weights[b]; });
      ty.store(y, out);
    });
  };
  f.cudnnConvolutionBiasActivationForward =
      [](cudnnHandle_t, const void*, const cudnnTensorDescriptor_t x_desc, const void* x,
         const cudnnFilterDescriptor_t w_desc, const void* w, const cudnnConvolutionDescriptor_t m_desc,
         cudnnConvolutionFwdAlgo_t algorithm, void* space, size_t bytes, const void*, const cudnnTensorDescriptor_t,
         const void*, const cudnnTensorDescriptor_t b_desc, const void* bias, const cudnnActivationDescriptor_t mode,
         const cudnnTensorDescriptor_t y_desc, void* y) {
        Tensor tx = of<Tensor>(x_desc), tw = of<Tensor>(w_desc), ty = of<Tensor>(y_desc), tb = of<Tensor>(b_desc);
        Movement m = of<Movement>(m_desc);
        bool relu = of<cudnnActivationMode_t>(mode) == CUDNN_ACTIVATION_RELU;
        bool right = fits(tx, tw, m, ty) && tb.n == 1 && tb.h == 1 && tb.w == 1 && tb.c == ty.c && tb.type == ty.type &&
                     (relu || algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
        return compute("cudnnConvolutionBiasActivationForward", right, algorithm, space, bytes, [=] {
          std::vector<double> in = tx.load(x), weights = tw.load(w), out(ty.elements()), add = tb.load(bias);
          for (size_t i = 0; i < out.size(); ++i)
            out[i] = add[i / static_cast<size_t>(ty.h * ty.w) % static_cast<size_t>(ty.c)];
          each(tx, tw, m, ty, [&](size_t a, size_t b, size_t to) { out[to] += in[a] * weights[b]; });
          for (double& v : out) v = relu ? std::max(v, 0.0) : v;
          ty.store(y, out);
        });
      };
  f.cudnnConvolutionBackwardData = [](cudnnHandle_t, const void*, const cudnnFilterDescriptor_t w_desc, const void* w,
                                      const cudnnTensorDescriptor_t y_desc, const void* d,
                                      const cudnnConvolutionDescriptor_t m_desc,
                                      cudnnConvolutionBwdDataAlgo_t algorithm, void* space, size_t bytes, const void*,
                                      const cudnnTensorDescriptor_t x_desc, void* dx) {
    Tensor tx = of<Tensor>(x_desc), tw = of<Tensor>(w_desc), ty = of<Tensor>(y_desc);
    Movement m = of<Movement>(m_desc);
    bool right = fits(tx, tw, m, ty) && (algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 ||
                                         algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD);
    return compute("cudnnConvolutionBackwardData", right, algorithm, space, bytes, [=] {
      std::vector<double> cotangent = ty.load(d), weights = tw.load(w), out(tx.elements());
      each(tx, tw, m, ty, [&](size_t to, size_t b, size_t c) { out[to] += cotangent[c] * weights[b]; });
      tx.store(dx, out);
    });
  };
  f.cudnnConvolutionBackwardFilter = [](cudnnHandle_t, const void*, const cudnnTensorDescriptor_t x_desc, const void* x,
                                        const cudnnTensorDescriptor_t y_desc, const void* d,
                                        const cudnnConvolutionDescriptor_t m_desc,
                                        cudnnConvolutionBwdFilterAlgo_t algorithm, void* space, size_t bytes,
                                        const void*, const cudnnFilterDescriptor_t w_desc, void* dw) {
    Tensor tx = of<Tensor>(x_desc), tw = of<Tensor>(w_desc), ty = of<Tensor>(y_desc);
    Movement m = of<Movement>(m_desc);
    bool right = fits(tx, tw, m, ty) && (algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 ||
                                         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED);
    return compute("cudnnConvolutionBackwardFilter", right, algorithm, space, bytes, [=] {
      std::vector<double> in = tx.load(x), cotangent = ty.load(d), out(tw.elements());
      each(tx, tw, m, ty, [&](size_t a, size_t to, size_t c) { out[to] += in[a] * cotangent[c]; });
      tw.store(dw, out);
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
    return create<cudnnActivationMode_t>("cudnnCreateActivationDescriptor", d);
  };
  f.cudnnDestroyActivationDescriptor = [](cudnnActivationDescriptor_t d) { return destroy<cudnnActivationMode_t>(d); };
  f.cudnnSetActivationDescriptor = [](cudnnActivationDescriptor_t d, cudnnActivationMode_t mode, cudnnNanPropagation_t,
                                      double) {
    of<cudnnActivationMode_t>(d) = mode;
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
  f.cudnnCreate = [](cudnnHandle_t* h) { return create<int>("cudnnCreate", h); };
  f.cudnnDestroy = [](cudnnHandle_t h) { return destroy<int>(h); };
  f.cudnnSetStream = [](cudnnHandle_t, cudaStream_t s) {
    stream = s;
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnGetVersion = []() -> size_t { return 91900; };
  f.cudnnGetErrorString = [](cudnnStatus_t) { return "as the test wanted"; };
  descriptors(f);
  rankings(f);
  convolutions(f);
  return f;
}

}  // namespace tutti::cuda::fake
