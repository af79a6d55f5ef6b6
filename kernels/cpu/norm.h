// Normalizations. Statistics are computed in one pass over x, in blocks that are centered by their own mean first, and
// combined in float64.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa_kernels.h"

namespace tutti::kernels {

/// Memory layout of channels: `groups` of up to `lanes` adjacent channels; a group has `segments` parts of `rows` rows
/// of its lanes. With one lane, the rows of a segment are contiguous.
struct ChannelLayout {
  int64_t channels, lanes, groups, segments, rows;
  int64_t stride;                    ///< between rows
  int64_t group_step, segment_step;  ///< strides between groups and between segments
  bool padded = false;               ///< the last group is padded with zero lanes

  int64_t count() const { return segments * rows; }  ///< elements per channel
  /// [n, c, s] row-major; blocks [n, c / block, s, block]; or channels last, [n, s, c].
  static ChannelLayout planes(int64_t n, int64_t c, int64_t s);
  static ChannelLayout blocks(int64_t n, int64_t c, int64_t s, int64_t block);
  static ChannelLayout last(int64_t n, int64_t c, int64_t s);
};

/// Weight, bias and unused results may be null. Statistics are per channel; x, y, d and dx have the storage type.
struct BatchNorm {
  ChannelLayout layout;
  Storage storage;
  double eps;
  NormLimits limits = {};  ///< bounds of y; must contain 0 if the layout is padded

  size_t scratch_bytes() const;
  void run(const void* x, const float* weight, const float* bias, void* y, float* mean, float* variance,
           std::byte* scratch, int threads) const;
  /// dx may be d (in place).
  void run_dx(const void* d, const void* x, const float* mean, const float* variance, const float* weight, void* dx,
              float* dweight, float* dbias, std::byte* scratch, int threads) const;
};

/// Normalizes rows of `size` elements by their own statistics, with weight and bias per position. Not centered
/// (rms_norm): the means are taken as 0 and not returned.
struct LineNorm {
  int64_t lines, size;
  Storage storage;
  bool centered;

  size_t scratch_bytes() const;
  void run(const void* x, const float* weight, const float* bias, void* y, float* mean, float* rstd, double eps,
           std::byte* scratch, int threads) const;
  void run_dx(const void* d, const void* x, const float* mean, const float* rstd, const float* weight, void* dx,
              float* dweight, float* dbias, std::byte* scratch, int threads) const;

 private:
  int64_t parts() const;
};

}  // namespace tutti::kernels
