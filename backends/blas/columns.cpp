#include "backends/blas/columns.h"

#include <algorithm>

namespace tutti::blas {
namespace {

/// Calls f(row of the matrix, channel, ky, kx) for every row.
template <class F>
void each_row(const ConvGeometry& g, const ColumnPart& part, F&& f) {
  int64_t row = 0;
  for (int64_t c = 0; c < part.channels; ++c)
    for (int64_t ky = 0; ky < g.h.kernel; ++ky)
      for (int64_t kx = 0; kx < g.w.kernel; ++kx) f(row++, c, ky, kx);
}

}  // namespace

void to_columns(const float* x, const ConvGeometry& g, const ColumnPart& part, float* columns, int64_t stride) {
  each_row(g, part, [&](int64_t row, int64_t c, int64_t ky, int64_t kx) {
    auto [top, bottom] = g.h.inside(ky);
    auto [left, right] = g.w.inside(kx);
    float* to = columns + row * stride;
    for (int64_t i = part.first; i < part.last; ++i, to += g.w.count) {
      if (i < top || i >= bottom) {
        std::fill_n(to, g.w.count, 0.0f);
        continue;
      }
      const float* from = x + (c * g.h.size + g.h.at(i, ky)) * g.w.size + g.w.at(left, kx);
      std::fill_n(to, left, 0.0f);
      if (g.w.stride == 1)
        std::copy_n(from, right - left, to + left);
      else
        for (int64_t j = left; j < right; ++j) to[j] = from[(j - left) * g.w.stride];
      std::fill(to + right, to + g.w.count, 0.0f);
    }
  });
}

void add_columns(const float* columns, int64_t stride, const ConvGeometry& g, const ColumnPart& part, float* x) {
  each_row(g, part, [&](int64_t row, int64_t c, int64_t ky, int64_t kx) {
    auto [top, bottom] = g.h.inside(ky);
    auto [left, right] = g.w.inside(kx);
    for (int64_t i = std::max(top, part.first); i < std::min(bottom, part.last); ++i) {
      const float* from = columns + row * stride + (i - part.first) * g.w.count;
      float* to = x + (c * g.h.size + g.h.at(i, ky)) * g.w.size + g.w.at(left, kx);
      if (g.w.stride == 1)
        for (int64_t j = left; j < right; ++j) to[j - left] += from[j];
      else
        for (int64_t j = left; j < right; ++j) to[(j - left) * g.w.stride] += from[j];
    }
  });
}

}  // namespace tutti::blas
