// Reductions over any axes in a fixed order of operations: bitwise equal results for all runs and thread counts.
#pragma once
#include <string>
#include <vector>

#include "core/geometry/reduction.h"
#include "kernels/cpu/isa_kernels.h"

namespace tutti::kernels {

/// A sum, mean, product, max or min reduction, prepared once and run many times.
///
/// Adjacent axes are merged; every group of reduced axes is then one stage [A, R, B] → [A, B], the innermost first.
/// Pieces of a fixed size (4096 elements of a row, 128 rows of a column) are folded in f32 (integers: i32) and combined
/// in order, so that the error of a sum of n terms grows like log n.
class Reduce {
 public:
  /// x of `type`, dense in the order of its dimensions; `axes` sorted, unique, not negative. The result is dense, of
  /// the same dtype, its dimensions in the order of x.
  Reduce(ReduceOp kind, const TensorType& type, const std::vector<int64_t>& axes);

  /// "" or the reason why the dtype cannot be reduced.
  static std::string declines(ReduceOp kind, DType t);
  /// Bytes of scratch that run() needs for `threads` threads.
  size_t scratch_bytes(int threads) const;
  void run(const void* x, void* y, std::byte* scratch, int threads) const;

 private:
  using Stage = ReductionStage;
  template <class T>
  void run_as(const void* x, void* y, std::byte* scratch, int threads) const;
  template <class T>
  void fold_rows(const Stage& s, const void* x, Storage from, T* y, T* partial, std::byte* buffers, int threads) const;
  template <class T>
  void fold_columns(const Stage& s, const void* x, Storage from, T* y, T* partial, std::byte* buffers,
                    int threads) const;

  ReduceOp kind_;
  ReduceOp fold_;
  DType dtype_;
  std::vector<Stage> stages_;
  int64_t results_ = 1, reduced_ = 1;
};

/// y (i32) = row-major index over `axes` of the largest element of x; the first in a tie, NaN counts as largest.
/// `axes`: sorted, unique, not negative; reduced axes must not be empty. dtypes: all but f64 and i64.
void argmax(const TensorType& type, const std::vector<int64_t>& axes, const void* x, int32_t* y, int threads);

}  // namespace tutti::kernels
