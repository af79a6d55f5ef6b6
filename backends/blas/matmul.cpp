// matmul: one product per pair of matrices, large ones cut into blocks of the result. The blocks depend on the shapes
// alone, so that results do not depend on the number of threads.
#include <algorithm>
#include <limits>

#include "backends/blas/blas.h"
#include "backends/blas/gemm.h"
#include "backends/cpu/compute_in_f32.h"
#include "backends/cpu/product.h"
#include "core/base/rounding.h"
#include "core/geometry/product.h"
#include "kernels/cpu/parallel.h"

namespace tutti::blas {
namespace {

/// Below this number of operations a product is one block.
constexpr double worth_blocks = 4e6;

class Product {
 public:
  explicit Product(const NodeView& c) : threads_(c.threads) {
    ta_ = c.node().attrs.i("ta") != 0, tb_ = c.node().attrs.i("tb") != 0;
    ProductGeometry g = product_geometry(c.in(0).shape, c.in(1).shape, ta_, tb_);
    if (!ta_ && g.b_matrices == 1) {  // the batch of a is more rows
      g.m *= g.a_matrices;
      g.a_of = g.b_of = {0};
    }
    m_ = g.m, n_ = g.n, k_ = g.k;
    for (int64_t of : g.a_of) a_at_.push_back(of * m_ * k_);
    for (int64_t of : g.b_of) b_at_.push_back(of * k_ * n_);
    operations_ = 2.0 * static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_) *
                  static_cast<double>(a_at_.size());
    rows_ = m_, columns_ = n_;
    if (a_at_.size() < 16 && operations_ > worth_blocks) {
      rows_ = std::min<int64_t>(m_, 192);
      columns_ = std::min(n_, std::clamp<int64_t>(align_up(65536 / rows_, int64_t{64}), 128, 1024));
    }
  }

  /// y = a b, or bias + a b.
  void run(const float* a, const float* b, const float* bias, float* y) const {
    const int64_t down = ceil_div(m_, rows_), across = ceil_div(n_, columns_);
    const auto items = static_cast<int64_t>(a_at_.size()) * down * across;
    // An element visit costs about as much as 32 operations of a product.
    kernels::share(items, static_cast<int64_t>(operations_ / 32), threads_, [&](int64_t first, int64_t last, int) {
      for (int64_t item = first; item < last; ++item) {
        const auto g = static_cast<size_t>(item / across / down);
        const int64_t row = item / across % down * rows_, column = item % across * columns_;
        const Gemm p{.ta = ta_,
                     .tb = tb_,
                     .m = std::min(rows_, m_ - row),
                     .n = std::min(columns_, n_ - column),
                     .k = k_,
                     .a = a + a_at_[g] + (ta_ ? row : row * k_),
                     .lda = ta_ ? m_ : k_,
                     .b = b + b_at_[g] + (tb_ ? column * k_ : column),
                     .ldb = tb_ ? k_ : n_,
                     .beta = bias ? 1.0f : 0.0f,
                     .c = y + (static_cast<int64_t>(g) * m_ + row) * n_ + column,
                     .ldc = n_};
        for (int64_t i = 0; i < p.m && bias; ++i) std::copy_n(bias + column, p.n, p.c + i * n_);
        gemm(p);
      }
    });
  }

  /// Whether the rows of the folded batch fit the library's 32 bits.
  bool counted() const { return m_ <= std::numeric_limits<int32_t>::max(); }

 private:
  bool ta_ = false, tb_ = false;
  int64_t m_ = 0, n_ = 0, k_ = 0, rows_ = 0, columns_ = 0;  // rows_, columns_: of a block
  std::vector<int64_t> a_at_, b_at_;                        // per matrix of y
  double operations_ = 0;
  int threads_;
};

MatchResult declines_shapes(const NodeView& c) {
  if (MatchResult why = cpu::expect_product(c); !why.empty()) return why;
  return c.wants(0) && !Product(c).counted() ? "dimensions above 2^31 - 1 are not supported" : "";
}

MatchResult declines(const NodeView& c) {
  if (c.node().inputs.empty()) return "no inputs";
  if (c.in(0).dtype != DType::f32) return "dtype " + std::string(name(c.in(0).dtype));
  return declines_shapes(c);
}

KernelPtr make(const NodeView& c) {
  const bool bias = c.epilogue.bias != TUTTI_NONE, empty = num_elements(c.out(0).shape) == 0;
  auto kernel = std::make_unique<FunctionKernel>(
      c, [product = Product(c), bias, empty](void* const* in, void* const* out, std::byte*) {
        auto floats = [](const void* x) { return static_cast<const float*>(x); };
        if (!empty)
          product.run(floats(in[0]), floats(in[1]), bias ? floats(in[2]) : nullptr, static_cast<float*>(out[0]));
      });
  if (bias) kernel->in.push_back({});
  kernel->implementation = description();
  return kernel;
}

MatchResult declines_wide(const NodeView& c) {
  if (c.node().inputs.empty()) return "no inputs";
  if (MatchResult why = cpu::mismatch_in_f32(c); !why.empty()) return why;
  return declines_shapes(c);
}

KernelPtr make_wide(const NodeView& c) { return cpu::make_in_f32(c, make(c)); }

const Entry entries[] = {{"blas matmul", "matmul", declines, make, {.bias = true}},
                         {"blas matmul in f32", "matmul", declines_wide, make_wide}};

}  // namespace

std::span<const Entry> matmul_entries() { return entries; }

}  // namespace tutti::blas
