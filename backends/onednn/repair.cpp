#include "backends/onednn/repair.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "backends/onednn/numbers.h"
#include "kernels/cpu/parallel.h"

namespace tutti::onednn {

SpoilResult spoil_result = nullptr;

namespace {

/// A NaN has all exponent bits and some mantissa bits set.
template <class Bits>
bool any_nan(const Bits* x, int64_t n, Bits sign_off, Bits infinite) {
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= (x[i] & sign_off) > infinite;
  return found;
}

bool any_nan(DType t, const void* x, int64_t first, int64_t last) {
  if (t == DType::f32)
    return any_nan<uint32_t>(static_cast<const uint32_t*>(x) + first, last - first, 0x7fffffff, 0x7f800000);
  uint16_t infinite = t == DType::f16 ? 0x7c00 : 0x7f80;
  return any_nan<uint16_t>(static_cast<const uint16_t*>(x) + first, last - first, 0x7fff, infinite);
}

/// One result of a kernel, and a function that computes its elements by the op's definition.
struct Judged {
  Desc desc;
  DType dtype;
  std::function<double(const Shape& index)> value;
  Numbers numbers;
  void* at = nullptr;

  Judged(const Desc& d, DType t, std::function<double(const Shape&)> f)
      : desc(d), dtype(t), value(std::move(f)), numbers(d, t) {}

  bool has_nan(int threads) const {
    auto n = static_cast<int64_t>(desc.get_size() / size_of(dtype));
    std::atomic<bool> found = false;
    kernels::share(n, n / 16, threads, [&](int64_t first, int64_t last, int) {
      if (any_nan(dtype, at, first, last)) found = true;
    });
    return found;
  }

  void repair(int threads) const {
    if (!at || !has_nan(threads)) return;
    Shape dims = desc.get_dims();
    int64_t inner = dims.back(), rows = num_elements(dims) / inner;
    kernels::share(rows, std::numeric_limits<int64_t>::max(), threads, [&](int64_t first, int64_t last, int) {
      for (int64_t row = first; row < last; ++row) {
        Shape index(dims.size());
        for (size_t d = dims.size() - 1, rest = static_cast<size_t>(row); d-- > 0; rest /= static_cast<size_t>(dims[d]))
          index[d] = static_cast<int64_t>(rest % static_cast<size_t>(dims[d]));
        for (index.back() = 0; index.back() < inner; ++index.back())
          if (std::isnan(numbers.get(index))) numbers.set(index, value(index));
      }
    });
  }
};

/// A kernel whose results are checked for NaN.
class Repaired : public Kernel {
 public:
  Repaired(KernelPtr kernel, DType dtype, int threads) : kernel_(std::move(kernel)), dtype_(dtype), threads_(threads) {
    in = kernel_->in;
    out = kernel_->out;
    scratch = kernel_->scratch;
    implementation = kernel_->implementation;
  }
  void bind(std::span<void* const> from, std::span<void* const> to, std::byte* scratch) override {
    kernel_->bind(from, to, scratch);
    for (size_t k = 0; k < inputs_.size(); ++k) inputs_[k].bind(from[k]);
    for (size_t k = 0; k < results_.size(); ++k) results_[k].numbers.bind(results_[k].at = to[k]);
  }
  void run() override {
    kernel_->run();
    for (const Judged& y : results_) {
      if (spoil_result && y.at) spoil_result(y.at, y.dtype, y.desc.get_size());
      y.repair(threads_);
    }
  }

 protected:
  /// Adds the next input.
  void read(const Desc& desc) { inputs_.emplace_back(desc, dtype_); }
  /// Adds the next result.
  void judge(const Desc& desc, std::function<double(const Shape&)> value) {
    results_.emplace_back(desc, dtype_, std::move(value));
  }
  double input(size_t k, const Shape& index) const { return inputs_[k].get(index); }

 private:
  KernelPtr kernel_;
  DType dtype_;
  int threads_;
  std::vector<Numbers> inputs_;
  std::vector<Judged> results_;
};

/// Sums of a convolution over pixels inside the images. Each stops at the first NaN, because the sum stays NaN.
class RepairedConv : public Repaired {
 public:
  RepairedConv(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype, int threads)
      : Repaired(std::move(conv), dtype, threads), g_(g) {
    for (const Layout& f : in) read(desc_of(f));
    auto by = [&](double (RepairedConv::*value)(const Shape&) const) {
      return [this, value](const Shape& index) { return (this->*value)(index); };
    };
    if (op == "conv2d") judge(desc_of(out[0]), by(&RepairedConv::forward));
    if (op == "conv2d_dx") judge(desc_of(out[0]), by(&RepairedConv::dx));
    if (op == "conv2d_dw") {
      judge(desc_of(out[0]), by(&RepairedConv::dw));
      if (out.size() > 1) judge(desc_of(out[1]), by(&RepairedConv::sum_of_cotangent));
    }
  }

 private:
  Shape weight(int64_t o, int64_t c, int64_t ky, int64_t kx) const {
    int64_t per_group = g_.filters_per_group();
    return g_.groups == 1 ? Shape{o, c, ky, kx} : Shape{o / per_group, o % per_group, c, ky, kx};
  }

  double forward(const Shape& at) const {
    int64_t o = at[1], first = o / g_.filters_per_group() * g_.depth();
    double sum = in.size() > 2 ? input(2, {o}) : 0;
    for (int64_t c = 0; c < g_.depth(); ++c)
      for (int64_t ky = 0; ky < g_.h.kernel; ++ky)
        for (int64_t kx = 0; kx < g_.w.kernel; ++kx) {
          int64_t y = g_.h.at(at[2], ky), x = g_.w.at(at[3], kx);
          if (y < 0 || x < 0 || y >= g_.h.size || x >= g_.w.size) continue;
          sum += input(0, {at[0], first + c, y, x}) * input(1, weight(o, c, ky, kx));
          if (std::isnan(sum)) return sum;
        }
    return sum;
  }

  /// The window whose tap reads the pixel, or -1.
  static int64_t window(const WindowAxis& a, int64_t pixel, int64_t tap) {
    int64_t from = pixel + a.padding - tap * a.dilation;
    return from < 0 || from % a.stride != 0 || from / a.stride >= a.count ? -1 : from / a.stride;
  }

  double dx(const Shape& at) const {
    int64_t c = at[1] % g_.depth(), first = at[1] / g_.depth() * g_.filters_per_group();
    double sum = 0;
    for (int64_t o = first; o < first + g_.filters_per_group(); ++o)
      for (int64_t ky = 0; ky < g_.h.kernel; ++ky)
        for (int64_t kx = 0; kx < g_.w.kernel; ++kx) {
          int64_t y = window(g_.h, at[2], ky), x = window(g_.w, at[3], kx);
          if (y < 0 || x < 0) continue;
          sum += input(0, {at[0], o, y, x}) * input(1, weight(o, c, ky, kx));
          if (std::isnan(sum)) return sum;
        }
    return sum;
  }

  double dw(const Shape& at) const {
    bool grouped = g_.groups > 1;
    int64_t o = grouped ? at[0] * g_.filters_per_group() + at[1] : at[0], c = at[grouped ? 2 : 1];
    int64_t ky = at[grouped ? 3 : 2], kx = at[grouped ? 4 : 3], channel = o / g_.filters_per_group() * g_.depth() + c;
    double sum = 0;
    for (int64_t n = 0; n < g_.batch; ++n)
      for (int64_t oy = 0; oy < g_.h.count; ++oy)
        for (int64_t ox = 0; ox < g_.w.count; ++ox) {
          int64_t y = g_.h.at(oy, ky), x = g_.w.at(ox, kx);
          if (y < 0 || x < 0 || y >= g_.h.size || x >= g_.w.size) continue;
          sum += input(1, {n, o, oy, ox}) * input(0, {n, channel, y, x});
          if (std::isnan(sum)) return sum;
        }
    return sum;
  }

  double sum_of_cotangent(const Shape& at) const {
    double sum = 0;
    for (int64_t n = 0; n < g_.batch; ++n)
      for (int64_t oy = 0; oy < g_.h.count; ++oy)
        for (int64_t ox = 0; ox < g_.w.count; ++ox) sum += input(1, {n, at[0], oy, ox});
    return sum;
  }

  ConvGeometry g_;
};

/// Sums of a product.
class RepairedProduct : public Repaired {
 public:
  RepairedProduct(const ProductDescs& p, KernelPtr product, DType dtype, int threads)
      : Repaired(std::move(product), dtype, threads), a_(p.a.get_dims()), b_(p.b.get_dims()) {
    read(p.a);
    read(p.b);
    if (in.size() > 2) read(p.bias);
    judge(p.y, [this](const Shape& at) { return sum(at); });
  }

 private:
  double sum(const Shape& at) const {
    size_t row = at.size() - 2, column = at.size() - 1;
    Shape a = at, b = at;
    for (size_t d = 0; d < row; ++d) {  // broadcast batch dimensions
      a[d] = std::min(a[d], a_[d] - 1);
      b[d] = std::min(b[d], b_[d] - 1);
    }
    double total = 0;
    if (in.size() > 2) {
      Shape bias(at.size(), 0);
      bias[column] = at[column];
      total = input(2, bias);
    }
    for (int64_t k = 0; k < a_[column] && !std::isnan(total); ++k) {
      a[column] = b[row] = k;
      total += input(0, a) * input(1, b);
    }
    return total;
  }

  Shape a_, b_;
};

}  // namespace

bool fills_sums(std::string_view implementation, DType t, int64_t terms) {
  if (size_of(t) == 4) return false;
  return terms % (implementation.find("amx") != std::string_view::npos ? 32 : 2) != 0;
}

KernelPtr with_repair(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype, int threads) {
  // The sums of dw run over the pixels of a row, which are always padded.
  int64_t terms = op == "conv2d" ? g.depth() : op == "conv2d_dx" ? g.filters_per_group() : 1;
  if (!spoil_result && !fills_sums(conv->implementation, dtype, terms)) return conv;
  return std::make_unique<RepairedConv>(op, g, std::move(conv), dtype, threads);
}

KernelPtr with_repair(const ProductDescs& p, KernelPtr product, DType dtype, int threads) {
  if (!spoil_result && !fills_sums(product->implementation, dtype, p.terms())) return product;
  return std::make_unique<RepairedProduct>(p, std::move(product), dtype, threads);
}

}  // namespace tutti::onednn
