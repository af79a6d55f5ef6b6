// The inner loops of every CPU kernel, compiled once per instruction set and chosen at run time.
//
// Lanes are 4 bytes: f32 (also for f16 and bf16 values), i32 (also for u8 and bool) or u32. Every instruction set
// performs the same IEEE operations in the same order, so results are bitwise equal on all machines, except for entries
// documented otherwise (attention's products).
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/geometry/reduction.h"

namespace tutti::kernels {

/// y[i] = f(a[i], b[i], c[i]) for i in [0, n). y may be one of the operands, but must not overlap one otherwise.
using LaneFn = void (*)(void* y, const void* a, const void* b, const void* c, int64_t n);

/// Type of a lane.
enum class Lane : uint8_t { f32, i32, u32 };

/// Storage formats for loads and stores of lanes.
enum class Storage : uint8_t { word, f16, bf16, u8, boolean };
inline Storage storage_of(DType t) {
  switch (t) {
    case DType::f16: return Storage::f16;
    case DType::bf16: return Storage::bf16;
    case DType::u8: return Storage::u8;
    case DType::boolean: return Storage::boolean;
    default: return Storage::word;
  }
}
/// Bytes of one element.
constexpr int64_t size_of(Storage s) {
  return s == Storage::word ? 4 : s == Storage::u8 || s == Storage::boolean ? 1 : 2;
}
/// The address of an element.
inline const void* at(const void* x, int64_t element, Storage s) {
  return static_cast<const std::byte*>(x) + element * size_of(s);
}
inline void* at(void* x, int64_t element, Storage s) { return static_cast<std::byte*>(x) + element * size_of(s); }

/// One row of windows over an image [height, width, inner] whose pixels are `inner` contiguous floats.
struct PoolRow {
  int64_t inner, height, width;  ///< the image
  int64_t kernel_h, stride_h, padding_h, dilation_h, kernel_w, stride_w, padding_w, dilation_w;
  int64_t count_h, count_w;  ///< windows along each axis
  int64_t row;               ///< row of windows (forward) or of the image (backward)
};

/// Bounds of a normalised value; NaN stays NaN.
struct NormLimits {
  float low = -__builtin_inff(), high = __builtin_inff();
};

/// Parameters of a line for normalization or its gradient.
struct NormLine {
  float mean, scale, shift, slope;
  NormLimits limits = {};
};

/// c[i, j] = factor Σ a[i, k] b[k, j] over k in [0, depth); with `add`, c += the sum without the factor. `a` has
/// arbitrary strides; rows of b and c are contiguous, and `columns` is a multiple of 16.
struct BlockProduct {
  float* c;
  int64_t c_row;
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t b_row;
  int64_t rows, depth, columns;
  bool add;
  float factor = 1;
};
/// Maximum number of columns of a block of scores.
constexpr int64_t max_columns = 64;

/// y[i, j] = Σ a[i, k] b[k, j] in the order of exact numerics, over a panel of b: rows of exact_panel floats, zeros
/// beyond `columns`. `a` has arbitrary strides.
struct ExactRows {
  float* y;
  int64_t y_row;
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t rows, depth, columns;
};
constexpr int64_t exact_panel = 32;

/// The loops of one instruction set.
struct IsaKernels {
  const char* name;  ///< "avx512_bf16", "avx512", "avx2", "baseline"
  /// The loop of an instruction from lane type `from` to `to`; bit k of `scalars`: operand k is a single element.
  /// nullptr: no such instruction.
  LaneFn (*find)(uint16_t code, Lane from, Lane to, uint32_t scalars);
  /// CAST to u8 or bool from lanes of type `from`.
  LaneFn (*clamp)(Storage, Lane from);
  /// Wraps (u8) or rounds (f16, bf16) lanes to values of the storage; nullptr if nothing needs to be done.
  LaneFn (*narrow)(Storage);
  LaneFn (*load)(Storage);   ///< storage → lanes
  LaneFn (*store)(Storage);  ///< lanes → storage (values must fit)
  /// Reduces n contiguous lanes (mean: as a sum) in a fixed order: 64 interleaved accumulators, then a tree. n >= 1.
  float (*fold_f32)(ReduceOp, const float* x, int64_t n);
  int32_t (*fold_i32)(ReduceOp, const int32_t* x, int64_t n);
  /// y[j] = y[j] fold x[0][j] fold … for `rows` rows `stride` elements apart; eight rows at a time as a tree.
  void (*fold_rows_f32)(ReduceOp, float* y, const float* x, int64_t rows, int64_t stride, int64_t n);
  void (*fold_rows_i32)(ReduceOp, int32_t* y, const int32_t* x, int64_t rows, int64_t stride, int64_t n);
  /// y[ox] = the largest element of each window of a row, index[ox] = its tap ky * kernel_w + kx: the first in a tie,
  /// NaN counts as largest. `x` is the whole image; y and index point to the row.
  void (*max_pool_row)(float* y, uint8_t* index, const float* x, const PoolRow&);
  /// dx[ix] = the sum of d over the windows whose index is the pixel, for one row of the image; d and index are the
  /// whole tensors.
  void (*max_pool_dx_row)(float* dx, const float* d, const uint8_t* index, const PoolRow&);
  /// sums[0] = sum of x - mean, sums[1] = sum of its squares over n contiguous elements (d and w are not read).
  void (*norm_line_deviations)(float* sums, const float* d, const float* x, const float* w, float mean, int64_t n);
  /// sums[0] = sum of g, sums[1] = sum of g (x - mean), where g = d w, or d if w is null.
  void (*norm_line_products)(float* sums, const float* d, const float* x, const float* w, float mean, int64_t n);
  /// The same per lane over `rows` rows with stride `stride`: writes `lanes` first sums, then `lanes` second sums.
  void (*norm_rows_deviations)(float* sums, const float* d, const float* x, const float* mean, int64_t rows,
                               int64_t stride, int64_t lanes);
  void (*norm_rows_products)(float* sums, const float* d, const float* x, const float* mean, int64_t rows,
                             int64_t stride, int64_t lanes);
  /// y = (x - mean) scale + shift, if w is not null times w plus b; clamped to the limits.
  void (*norm_line)(float* y, const float* x, const float* w, const float* b, const NormLine&, int64_t n);
  /// dx = scale (g - shift - (x - mean) slope); if dw is not null, dw += d ((x - mean) scale), db += d.
  void (*norm_dx_line)(float* dx, float* dw, float* db, const float* d, const float* x, const float* w, const NormLine&,
                       int64_t n);
  /// norm_line and norm_dx_line without weights over rows: `numbers` holds `lanes` means, scales, shifts and slopes.
  void (*norm_rows)(float* y, const float* x, const float* numbers, const NormLimits&, int64_t rows, int64_t stride,
                    int64_t lanes);
  void (*norm_dx_rows)(float* dx, const float* d, const float* x, const float* numbers, int64_t rows, int64_t stride,
                       int64_t lanes);
  /// One row of an LSTM step with n cells: computes gates [i, f, g, o], c and h from z + product and the previous
  /// cells.
  void (*lstm_row)(float* gates, float* c, float* h, const float* z, const float* product, const float* before,
                   int64_t n);
  /// The gradient of lstm_row: computes dz, and dc in place, from dh and the results of lstm_row.
  void (*lstm_dx_row)(float* dz, float* dc, const float* dh, const float* gates, const float* c, const float* before,
                      int64_t n);
  /// y[r * stride] = the product of row r of x [rows, 32 blocks] with one row of quantised weights: its quants, and
  /// `parts` (1 or 2) scales and minimums per block; `sums` [rows, blocks parts] is the sum of x over each part.
  void (*quantized_row_4)(float* y, int64_t stride, const uint8_t* quants, const float* scales, const float* mins,
                          const float* x, const float* sums, int64_t blocks, int64_t parts, int64_t rows);
  void (*quantized_row_8)(float* y, int64_t stride, const uint8_t* quants, const float* scales, const float* mins,
                          const float* x, const float* sums, int64_t blocks, int64_t parts, int64_t rows);
  /// Products for attention. The last bits depend on the instruction set, because FMA is used if available.
  void (*block_product)(const BlockProduct&);
  /// The same with pairs of bf16 along `depth` as elements of a and b; null if the CPU has no such instructions.
  void (*pair_product)(const BlockProduct&);
  /// Online softmax over the columns of s [rows, columns], next block: updates the maximum `high`; s = exp(s - high);
  /// rescale = exp(old high - new high); total = total rescale + the sum of s. Returns false if no maximum changed.
  bool (*softmax_block)(float* s, float* high, float* total, float* rescale, int64_t rows, int64_t columns);
  /// After the last block: writes log-sum-exp to lse and the columns' final factors to total; 0 and 1 for columns that
  /// are all -inf.
  void (*softmax_block_end)(float* lse, float* total, const float* high, int64_t columns);
  /// p = exp(s - lse); d = p (kept d - delta), s = kept p. A null `kept` means 1.
  void (*softmax_block_dx)(float* s, float* d, const float* kept, const float* lse, const float* delta, int64_t rows,
                           int64_t columns);
  /// y[i, j] *= scale[j].
  void (*scale_columns)(float* y, int64_t y_row, const float* scale, int64_t rows, int64_t columns);
  /// y[j, i] = x[i, j] scale; copies bits if scale is 1.
  void (*transpose)(float* y, int64_t y_row, const float* x, int64_t x_row, int64_t rows, int64_t columns, float scale);
  /// Philox words for elements [4 * block, 4 * (block + blocks)) of draw (seed, step, stream).
  void (*random)(uint32_t* y, uint64_t seed, uint32_t step, uint32_t stream, uint64_t block, int64_t blocks);
  /// Exact numerics: the loop of a float instruction, as `find`; nullptr: that of `find`.
  LaneFn (*find_exact)(uint16_t code, uint32_t scalars);
  /// Exact numerics: y[c] = the fold of x[i * step + c] over i in [0, n), n <= exact_sum_piece.
  void (*exact_fold)(ReduceOp, float* y, const float* x, int64_t n, int64_t step, int64_t columns);
  /// Exact numerics: a panel of a product.
  void (*exact_product)(const ExactRows&);
};

/// The best set for this machine. TUTTI_ISA = baseline | avx2 | avx512 | avx512_bf16 selects a lower one (read once).
const IsaKernels& isa_kernels();
/// The set of that name, or nullptr if this machine cannot run it.
const IsaKernels* isa_kernels_named(const char* name);

}  // namespace tutti::kernels
