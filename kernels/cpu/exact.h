// Exact numerics on the CPU (docs/EXACT.md): products and reductions in fixed orders, with one rounding per operation.
#pragma once
#include <cstddef>
#include <vector>

#include "core/base/shape.h"
#include "core/geometry/reduction.h"

namespace tutti::kernels {

/// y[g, i, j] = Σ over k of a[g, i, k] b[g, k, j], f32, prepared once and run many times.
class ExactProduct {
 public:
  /// Row-major operands of rank 2 or more, transposed first by `ta`, `tb`; leading dimensions broadcast.
  ExactProduct(const Shape& a, const Shape& b, bool ta, bool tb);
  /// Bytes of scratch that run() needs.
  size_t scratch_bytes() const;
  void run(const float* a, const float* b, float* y, std::byte* scratch, int threads) const;

 private:
  void pack(const float* b, float* panels, int threads) const;
  int64_t m_, n_, k_, panels_;
  bool ta_, tb_;
  std::vector<int64_t> a_at_, b_of_;  // per matrix of y: offset in a, number of the matrix of b
  std::vector<int64_t> b_at_;         // per matrix of b: its offset
};

/// A sum, product, max or min of f32 over axes, prepared once and run many times.
class ExactReduce {
 public:
  /// x dense, row-major; `axes` sorted, unique, not negative. The result is dense.
  ExactReduce(ReduceOp kind, const Shape& x, const Ints& axes);
  /// Bytes of scratch that run() needs.
  size_t scratch_bytes() const;
  void run(const float* x, float* y, std::byte* scratch, int threads) const;

 private:
  ReduceOp kind_;
  std::vector<ReductionStage> stages_;  // each of at most exact_sum_piece elements per result, or cut into such pieces
  int64_t results_ = 1;
  bool empty_ = false;
};

}  // namespace tutti::kernels
