// Max pooling of planes and its gradient. Average pools are decomposed.
#include <algorithm>
#include <cmath>

#include "backends/blas/blas.h"
#include "core/geometry/window.h"
#include "kernels/cpu/parallel.h"

namespace tutti::blas {
namespace {

/// One row of windows: y and the taps, the first in a tie; NaN counts as largest.
void pool_row(const float* x, const WindowGeometry& g, int64_t row, float* y, int32_t* index) {
  std::fill_n(index, g.w.count, -1);
  for (int64_t ky = 0; ky < g.h.kernel; ++ky) {
    const int64_t from = g.h.at(row, ky);
    if (from < 0 || from >= g.h.size) continue;
    for (int64_t kx = 0; kx < g.w.kernel; ++kx) {
      auto [left, right] = g.w.inside(kx);
      const auto tap = static_cast<int32_t>(ky * g.w.kernel + kx);
      const float* at = x + from * g.w.size + g.w.at(left, kx);
      for (int64_t j = left; j < right; ++j) {
        const float value = at[(j - left) * g.w.stride];
        const bool better = index[j] < 0 || value > y[j] || (std::isnan(value) && !std::isnan(y[j]));
        y[j] = better ? value : y[j];
        index[j] = better ? tap : index[j];
      }
    }
  }
}

/// The sum of d over the windows whose index is the pixel, in the order of windows.
void pool_dx_plane(const float* d, const int32_t* index, const WindowGeometry& g, float* dx) {
  std::fill_n(dx, g.h.size * g.w.size, 0.0f);
  for (int64_t i = 0; i < g.h.count; ++i)
    for (int64_t j = 0; j < g.w.count; ++j, ++d, ++index)
      dx[g.h.at(i, *index / g.w.kernel) * g.w.size + g.w.at(j, *index % g.w.kernel)] += *d;
}

MatchResult declines_f32(const NodeView& c) {
  return c.in(0).dtype == DType::f32 ? "" : "dtype " + std::string(name(c.in(0).dtype));
}

// ---- max_pool2d: x; y, index (i32)

MatchResult declines(const NodeView& c) {
  if (MatchResult why = cpu::expect_inputs(c, 1); !why.empty()) return why;
  if (MatchResult why = declines_f32(c); !why.empty()) return why;
  const WindowGeometry g = pool_geometry(c.in(0).shape, c.node().attrs);
  if (MatchResult why = cpu::expect_result(c, 0, {DType::f32, g.pooled()}); !why.empty()) return why;
  return cpu::expect_result(c, 1, {DType::i32, g.pooled()});
}

KernelPtr make(const NodeView& c) {
  const WindowGeometry g = pool_geometry(c.in(0).shape, c.node().attrs);
  const int64_t rows = g.planes() * g.h.count, line = g.w.count;
  const size_t bytes = cpu::aligned(static_cast<size_t>(line) * 4);  // of an unused result's row
  auto run = [=, threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
    kernels::share(rows, rows * line * g.taps(), threads, [&](int64_t first, int64_t last, int part) {
      std::byte* mine = scratch + static_cast<size_t>(part) * 2 * bytes;
      for (int64_t k = first; k < last; ++k)
        pool_row(static_cast<const float*>(in[0]) + k / g.h.count * g.h.size * g.w.size, g, k % g.h.count,
                 out[0] ? static_cast<float*>(out[0]) + k * line : reinterpret_cast<float*>(mine),
                 out[1] ? static_cast<int32_t*>(out[1]) + k * line : reinterpret_cast<int32_t*>(mine + bytes));
    });
  };
  return std::make_unique<FunctionKernel>(c, run, 2 * bytes * static_cast<size_t>(c.threads));
}

// ---- max_pool2d_dx: d, index; dx

MatchResult declines_dx(const NodeView& c) {
  if (MatchResult why = cpu::expect_inputs(c, 2); !why.empty()) return why;
  if (MatchResult why = declines_f32(c); !why.empty()) return why;
  const WindowGeometry g = pool_geometry(c.node().attrs.ints("shape"), c.node().attrs);
  if (c.in(0).shape != g.pooled() || c.in(1) != TensorType{DType::i32, g.pooled()})
    return "the cotangent or the index does not have the pool's shape " + to_string(g.pooled());
  return cpu::expect_result(c, 0, {DType::f32, g.images()});
}

KernelPtr make_dx(const NodeView& c) {
  const WindowGeometry g = pool_geometry(c.node().attrs.ints("shape"), c.node().attrs);
  auto run = [g, threads = c.threads](void* const* in, void* const* out, std::byte*) {
    const int64_t from = g.h.count * g.w.count, to = g.h.size * g.w.size;
    kernels::share(g.planes(), g.planes() * to, threads, [&](int64_t first, int64_t last, int) {
      for (int64_t k = first; k < last; ++k)
        pool_dx_plane(static_cast<const float*>(in[0]) + k * from, static_cast<const int32_t*>(in[1]) + k * from, g,
                      static_cast<float*>(out[0]) + k * to);
    });
  };
  return std::make_unique<FunctionKernel>(c, run);
}

const Entry entries[] = {{"planes max pool", "max_pool2d", declines, make},
                         {"planes max pool gradient", "max_pool2d_dx", declines_dx, make_dx}};

}  // namespace

std::span<const Entry> pool_entries() { return entries; }

}  // namespace tutti::blas
