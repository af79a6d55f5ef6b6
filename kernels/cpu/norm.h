// Normalisations: statistics in one read of x, by pieces whose mean is taken first, added up in float64.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa_kernels.h"

namespace tutti::kernels {

/// Where the elements of each channel lie: `groups` of up to `lanes` channels beside each other; a group has `segments`
/// parts, each of `rows` rows of its lanes. One lane: the rows of a segment are contiguous.
struct ChannelLayout {
  int64_t channels, lanes, groups, segments, rows;
  int64_t stride;                    ///< from row to row
  int64_t group_step, segment_step;  ///< from group to group, from segment to segment
  bool padded = false;               ///< the last group has all its lanes, which hold zeros where there is no channel

  int64_t count() const { return segments * rows; }  ///< elements per channel
  /// [n, c, s] row-major; blocks [n, c / block, s, block]; or channels last, [n, s, c].
  static ChannelLayout planes(int64_t n, int64_t c, int64_t s);
  static ChannelLayout blocks(int64_t n, int64_t c, int64_t s, int64_t block);
  static ChannelLayout last(int64_t n, int64_t c, int64_t s);
};

/// Weight and bias may be null, and so may results that nobody wants. Statistics are per channel; `x` has the storage.
struct BatchNorm {
  ChannelLayout layout;
  Storage storage;
  double eps;
  NormLimits limits = {};  ///< of y; where the layout is padded 0 is within them

  size_t scratch_bytes() const;
  void run(const void* x, const float* weight, const float* bias, void* y, float* mean, float* variance,
           std::byte* scratch, int threads) const;
  /// dx may lie where d does.
  void run_dx(const void* d, const void* x, const float* mean, const float* variance, const float* weight, void* dx,
              float* dweight, float* dbias, std::byte* scratch, int threads) const;
};

/// Rows of `size` elements, normalised by their own statistics; weight and bias per place in a row. Not centered: the
/// means are 0, and there are none (rms_norm).
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
