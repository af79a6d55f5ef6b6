#include "kernels/cpu/exact.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/rounding.h"
#include "core/geometry/product.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

float neutral(ReduceOp kind) {
  switch (kind) {
    case ReduceOp::prod: return 1;
    case ReduceOp::max: return -HUGE_VALF;
    case ReduceOp::min: return HUGE_VALF;
    default: return 0;
  }
}

}  // namespace

ExactProduct::ExactProduct(const Shape& a, const Shape& b, bool ta, bool tb) : ta_(ta), tb_(tb) {
  ProductGeometry g = product_geometry(a, b, ta, tb);
  m_ = g.m, n_ = g.n, k_ = g.k;
  panels_ = ceil_div(n_, exact_panel);
  for (int64_t of : g.a_of) a_at_.push_back(of * m_ * k_);
  b_of_ = std::move(g.b_of);
  for (int64_t of = 0; of < g.b_matrices; ++of) b_at_.push_back(of * k_ * n_);
}

size_t ExactProduct::scratch_bytes() const {
  return b_at_.size() * static_cast<size_t>(panels_ * k_ * exact_panel) * sizeof(float);
}

void ExactProduct::pack(const float* b, float* panels, int threads) const {
  int64_t count = static_cast<int64_t>(b_at_.size()) * panels_;
  share(count, count * k_ * exact_panel, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t p = first; p < last; ++p) {
      const float* from = b + b_at_[static_cast<size_t>(p / panels_)];
      float* to = panels + p * k_ * exact_panel;
      int64_t column = p % panels_ * exact_panel, wide = std::min(exact_panel, n_ - column);
      for (int64_t k = 0; k < k_; ++k)
        for (int64_t j = 0; j < exact_panel; ++j)
          to[k * exact_panel + j] = j >= wide ? 0 : tb_ ? from[(column + j) * k_ + k] : from[k * n_ + column + j];
    }
  });
}

void ExactProduct::run(const float* a, const float* b, float* y, std::byte* scratch, int threads) const {
  auto batches = static_cast<int64_t>(a_at_.size());
  if (k_ == 0) {
    std::fill_n(y, batches * m_ * n_, 0.0f);
    return;
  }
  auto* panels = reinterpret_cast<float*>(scratch);
  pack(b, panels, threads);
  constexpr int64_t block = 32;  // rows
  int64_t blocks = ceil_div(m_, block), items = batches * blocks * panels_;
  share(items, items * block * k_, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t item = first; item < last; ++item) {
      int64_t g = item / panels_ / blocks, panel = item / blocks % panels_, row = item % blocks * block;
      auto at = static_cast<size_t>(g);
      isa_kernels().exact_product({.y = y + (g * m_ + row) * n_ + panel * exact_panel,
                                   .y_row = n_,
                                   .a = a + a_at_[at] + row * (ta_ ? 1 : k_),
                                   .a_row = ta_ ? 1 : k_,
                                   .a_step = ta_ ? m_ : 1,
                                   .b = panels + (b_of_[at] * panels_ + panel) * k_ * exact_panel,
                                   .rows = std::min(block, m_ - row),
                                   .depth = k_,
                                   .columns = std::min(exact_panel, n_ - panel * exact_panel)});
    }
  });
}

ExactReduce::ExactReduce(ReduceOp kind, const Shape& x, const Ints& axes) : kind_(kind) {
  for (size_t d = 0; d < x.size(); ++d)
    if (!std::ranges::binary_search(axes, static_cast<int64_t>(d))) results_ *= x[d];
  empty_ = num_elements(x) == 0;
  for (ReductionStage s : reduction_stages(x, axes))
    for (bool more = true; more; s.r = ceil_div(s.r, exact_sum_piece)) {
      stages_.push_back(s);
      more = s.r > exact_sum_piece;
    }
  if (stages_.empty()) stages_.push_back({results_, 1, 1});
}

size_t ExactReduce::scratch_bytes() const {  // two buffers in turn
  int64_t most = 0;
  for (size_t k = 0; k + 1 < stages_.size(); ++k)
    most = std::max(most, stages_[k].a * ceil_div(stages_[k].r, exact_sum_piece) * stages_[k].b);
  return static_cast<size_t>(2 * most) * sizeof(float);
}

void ExactReduce::run(const float* x, float* y, std::byte* scratch, int threads) const {
  if (empty_) {
    std::fill_n(y, results_, neutral(kind_));
    return;
  }
  auto* buffers = reinterpret_cast<float*>(scratch);
  auto half = static_cast<int64_t>(scratch_bytes() / sizeof(float) / 2);
  for (size_t k = 0; k < stages_.size(); ++k) {
    const ReductionStage& s = stages_[k];
    float* to = k + 1 == stages_.size() ? y : buffers + static_cast<int64_t>(k % 2) * half;
    int64_t pieces = ceil_div(s.r, exact_sum_piece);
    share(s.a * pieces, s.a * s.r * s.b, threads, [&](int64_t first, int64_t last, int) {
      for (int64_t item = first; item < last; ++item) {
        int64_t a = item / pieces, from = item % pieces * exact_sum_piece;
        isa_kernels().exact_fold(kind_, to + item * s.b, x + (a * s.r + from) * s.b,
                                 std::min(exact_sum_piece, s.r - from), s.b, s.b);
      }
    });
    x = to;
  }
}

}  // namespace tutti::kernels
