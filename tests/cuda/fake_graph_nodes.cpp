// The nodes of graphs, in float64 (results of cuDNN's virtual tensors are float32).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/dtype.h"
#include "tests/cuda/fake_descriptors.h"
#include "tests/cuda/fake_graphs.h"

namespace tutti::cuda::fake {
namespace {

using Index = std::array<int64_t, 4>;

/// A tensor's values, dense.
struct Array {
  Index dims = {1, 1, 1, 1};
  std::vector<double> at;

  /// The element of an index of a larger tensor: a dimension that is smaller is repeated, each element for so many
  /// neighbours, as heads of keys are.
  double element(const Index& i, const Index& of) const {
    int64_t place = 0;
    for (size_t d = 0; d < 4; ++d) place = place * dims[d] + i[d] * dims[d] / of[d];
    return at[static_cast<size_t>(place)];
  }
  double& own(const Index& i) {
    return at[static_cast<size_t>(((i[0] * dims[1] + i[1]) * dims[2] + i[2]) * dims[3] + i[3])];
  }
};

template <class Visit>
void each(const Index& dims, const Visit& visit) {
  Index i;
  for (i[0] = 0; i[0] < dims[0]; ++i[0])
    for (i[1] = 0; i[1] < dims[1]; ++i[1])
      for (i[2] = 0; i[2] < dims[2]; ++i[2])
        for (i[3] = 0; i[3] < dims[3]; ++i[3]) visit(i);
}

int64_t count_of(const Index& dims) { return dims[0] * dims[1] * dims[2] * dims[3]; }

Array zeros(const Index& dims) { return {dims, std::vector<double>(static_cast<size_t>(count_of(dims)))}; }

Index four(const std::vector<int64_t>& list) {
  if (list.size() != 4) throw std::runtime_error(fmt::format("a tensor of {} dimensions", list.size()));
  return {list[0], list[1], list[2], list[3]};
}

DType dtype_of(const Descriptor& t) {
  switch (t.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)) {
    case CUDNN_DATA_FLOAT: return DType::f32;
    case CUDNN_DATA_HALF: return DType::f16;
    case CUDNN_DATA_BFLOAT16: return DType::bf16;
    case CUDNN_DATA_INT32: return DType::i32;
    case CUDNN_DATA_BOOLEAN: return DType::boolean;
    default: throw std::runtime_error("a tensor's dtype");
  }
}

class Run {
 public:
  Run(const int64_t* uids, void* const* pointers, size_t count, bool loses_nan) : loses_nan_(loses_nan) {
    for (size_t k = 0; k < count; ++k) given_[uids[k]] = pointers[k];
  }

  void node(const Descriptor& n) {
    switch (n.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return product(n);
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return pointwise(n);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return reduction(n);
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: return reshape(n);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: return convolution(n);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: return convolution_to_images(n);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: return convolution_to_weights(n);
      default: throw std::runtime_error(fmt::format("an operation of kind {}", static_cast<int>(n.type)));
    }
  }

 private:
  static Index dims_of(const Descriptor& t) { return four(t.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)); }
  static int64_t uid_of(const Descriptor& t) { return t.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID); }

  static int64_t place_of(const Descriptor& t, const Index& i) {
    Index strides = four(t.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES));
    return i[0] * strides[0] + i[1] * strides[1] + i[2] * strides[2] + i[3] * strides[3];
  }

  Array read(const Descriptor& t) const {
    if (auto at = made_.find(uid_of(t)); at != made_.end()) return at->second;
    auto given = given_.find(uid_of(t));
    if (given == given_.end()) throw std::runtime_error("a tensor that nothing gives");
    Array a{dims_of(t), {}};
    each(a.dims, [&](const Index& i) {
      a.at.push_back(load_element(dtype_of(t), given->second, static_cast<size_t>(place_of(t, i))));
    });
    return a;
  }

  void write(const Descriptor& t, Array a) {
    Index dims = dims_of(t);
    if (a.dims != dims) throw std::runtime_error("a result of another shape");
    if (auto given = given_.find(uid_of(t)); given != given_.end()) {
      size_t k = 0;
      each(dims, [&](const Index& i) {
        store_element(dtype_of(t), given->second, static_cast<size_t>(place_of(t, i)), a.at[k++]);
      });
    }
    for (double& x : a.at) x = round_to(dtype_of(t), x);
    made_[uid_of(t)] = std::move(a);
  }

  /// c = a b over the last two dimensions.
  void product(const Descriptor& n) {
    Array a = read(n.descriptor(CUDNN_ATTR_OPERATION_MATMUL_ADESC)),
          b = read(n.descriptor(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    const Descriptor& t = n.descriptor(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    Array c{dims_of(t), {}};
    Index of_a = {c.dims[0], c.dims[1], a.dims[2], a.dims[3]}, of_b = {c.dims[0], c.dims[1], b.dims[2], b.dims[3]};
    if (a.dims[2] != c.dims[2] || b.dims[3] != c.dims[3] || a.dims[3] != b.dims[2])
      throw std::runtime_error("a product of matrices that do not fit");
    each(c.dims, [&](const Index& i) {
      double sum = 0;
      for (int64_t k = 0; k < a.dims[3]; ++k)
        sum += a.element({i[0], i[1], i[2], k}, of_a) * b.element({i[0], i[1], k, i[3]}, of_b);
      c.at.push_back(sum);
    });
    write(t, std::move(c));
  }

  /// Calls visit(x, w, y) with the indices of every product of a convolution, whose shapes must fit.
  template <class Visit>
  static void each_product(const Descriptor& how, const Index& x, const Index& w, const Index& y, const Visit& visit) {
    if (how.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION ||
        how.one<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
        how.one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != 2)
      throw std::runtime_error("a convolution of another kind");
    auto before = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
         behind = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
         stride = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
         dilation = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    bool fits = x[0] == y[0] && w[0] == y[1] && x[1] % w[1] == 0 && w[0] % (x[1] / w[1]) == 0;
    for (size_t d = 0; d < 2; ++d)
      fits &=
          y[d + 2] == (x[d + 2] + before.at(d) + behind.at(d) - dilation.at(d) * (w[d + 2] - 1) - 1) / stride.at(d) + 1;
    if (!fits) throw std::runtime_error("a convolution whose shapes do not fit");
    int64_t filters_of_group = w[0] / (x[1] / w[1]);
    each(y, [&](const Index& to) {
      each({1, w[1], w[2], w[3]}, [&](const Index& tap) {
        Index from = {to[0], to[1] / filters_of_group * w[1] + tap[1],
                      to[2] * stride[0] + tap[2] * dilation[0] - before[0],
                      to[3] * stride[1] + tap[3] * dilation[1] - before[1]};
        if (from[2] >= 0 && from[2] < x[2] && from[3] >= 0 && from[3] < x[3])
          visit(from, Index{to[1], tap[1], tap[2], tap[3]}, to);
      });
    });
  }

  static void check_scale(const Descriptor& n, cudnnBackendAttributeName_t alpha, cudnnBackendAttributeName_t beta) {
    if (n.one<float>(alpha) != 1 || n.one<float>(beta) != 0) throw std::runtime_error("a scaled convolution");
  }

  void convolution(const Descriptor& n) {
    check_scale(n, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
    const Descriptor& t = n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
    Array x = read(n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X)),
          w = read(n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)), y = zeros(dims_of(t));
    each_product(n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC), x.dims, w.dims, y.dims,
                 [&](const Index& i, const Index& k, const Index& to) { y.own(to) += x.own(i) * w.own(k); });
    write(t, std::move(y));
  }

  void convolution_to_images(const Descriptor& n) {
    check_scale(n, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
    const Descriptor& t = n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
    Array dy = read(n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY)),
          w = read(n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W)), dx = zeros(dims_of(t));
    each_product(n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC), dx.dims, w.dims, dy.dims,
                 [&](const Index& i, const Index& k, const Index& to) { dx.own(i) += dy.own(to) * w.own(k); });
    write(t, std::move(dx));
  }

  void convolution_to_weights(const Descriptor& n) {
    check_scale(n, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
    const Descriptor& t = n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
    Array x = read(n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X)),
          dy = read(n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY)), dw = zeros(dims_of(t));
    each_product(n.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC), x.dims, dw.dims, dy.dims,
                 [&](const Index& i, const Index& k, const Index& to) { dw.own(k) += x.own(i) * dy.own(to); });
    write(t, std::move(dw));
  }

  /// The operand's memory with the result's dimensions and strides, such as a transpose.
  void reshape(const Descriptor& n) {
    const Descriptor &from = n.descriptor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
                     &to = n.descriptor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    Array x = read(from), y{dims_of(to), {}};
    std::map<int64_t, double> memory;
    size_t k = 0;
    each(x.dims, [&](const Index& i) { memory[place_of(from, i)] = x.at[k++]; });
    each(y.dims, [&](const Index& i) { y.at.push_back(memory.at(place_of(to, i))); });
    write(to, std::move(y));
  }

  void reduction(const Descriptor& n) {
    Array x = read(n.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    const Descriptor& t = n.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    auto how =
        n.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC).one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    if (how != CUDNN_REDUCE_TENSOR_ADD && how != CUDNN_REDUCE_TENSOR_MAX) throw std::runtime_error("a reduction");
    bool adds = how == CUDNN_REDUCE_TENSOR_ADD;
    Array y{dims_of(t), {}};
    y.at.assign(static_cast<size_t>(count_of(y.dims)), adds ? 0 : -std::numeric_limits<double>::infinity());
    each(x.dims, [&](const Index& i) {
      int64_t place = 0;
      for (size_t d = 0; d < 4; ++d) place = place * y.dims[d] + i[d] * y.dims[d] / x.dims[d];
      double &to = y.at[static_cast<size_t>(place)], from = x.element(i, x.dims);
      to = adds ? to + from : std::max(to, from);
    });
    write(t, std::move(y));
  }

  static double value(cudnnPointwiseMode_t mode, double a, double b, double t) {
    switch (mode) {
      case CUDNN_POINTWISE_ADD: return a + b;
      case CUDNN_POINTWISE_SUB: return a - b;
      case CUDNN_POINTWISE_MUL: return a * b;
      case CUDNN_POINTWISE_DIV: return a / b;
      case CUDNN_POINTWISE_MAX: return std::max(a, b);
      case CUDNN_POINTWISE_EXP: return std::exp(a);
      case CUDNN_POINTWISE_LOG: return std::log(a);
      case CUDNN_POINTWISE_IDENTITY: return a;
      case CUDNN_POINTWISE_CMP_GE: return a >= b;
      case CUDNN_POINTWISE_CMP_GT: return a > b;
      case CUDNN_POINTWISE_CMP_LE: return a <= b;
      case CUDNN_POINTWISE_CMP_LT: return a < b;
      case CUDNN_POINTWISE_LOGICAL_AND: return a != 0 && b != 0;
      case CUDNN_POINTWISE_BINARY_SELECT: return t != 0 ? a : b;
      default: throw std::runtime_error(fmt::format("a pointwise operation of mode {}", static_cast<int>(mode)));
    }
  }

  void pointwise(const Descriptor& n) {
    const Descriptor& how = n.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    auto mode = how.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    const Descriptor& result = n.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    auto operand = [&](cudnnBackendAttributeName_t name) {
      return n.has(name) ? read(n.descriptor(name)) : Array{{1, 1, 1, 1}, {0}};
    };
    Array y{dims_of(result), {}};
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
      auto axis = static_cast<size_t>(how.one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS));
      each(y.dims, [&](const Index& i) { y.at.push_back(static_cast<double>(i.at(axis))); });
      return write(result, std::move(y));
    }
    Array a = operand(CUDNN_ATTR_OPERATION_POINTWISE_XDESC), b = operand(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
          t = operand(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    if (mode == CUDNN_POINTWISE_RELU_FWD) {
      bool keeps =
          how.one<cudnnNanPropagation_t>(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) == CUDNN_PROPAGATE_NAN && !loses_nan_;
      auto low = how.one<double>(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP),
           high = how.one<double>(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP);
      if (how.one<double>(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE) != 0) throw std::runtime_error("a leaky ReLU");
      each(y.dims, [&](const Index& i) {
        double x = a.element(i, y.dims);
        y.at.push_back(std::isnan(x) ? keeps ? x : 0 : std::clamp(x, low, high));
      });
      return write(result, std::move(y));
    }
    each(y.dims, [&](const Index& i) {
      y.at.push_back(value(mode, a.element(i, y.dims), b.element(i, y.dims), t.element(i, y.dims)));
    });
    write(result, std::move(y));
  }

  bool loses_nan_;
  std::map<int64_t, void*> given_;
  std::map<int64_t, Array> made_;
};

}  // namespace

void compute(const Descriptor& graph, const int64_t* uids, void* const* pointers, size_t count, bool loses_nan) {
  Run run(uids, pointers, count, loses_nan);
  for (const auto& n : graph.descriptors(CUDNN_ATTR_OPERATIONGRAPH_OPS)) run.node(*n);
}

}  // namespace tutti::cuda::fake
