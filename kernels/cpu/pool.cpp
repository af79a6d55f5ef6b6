#include "kernels/cpu/pool.h"

#include <algorithm>

#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

PoolRow row_of(int64_t inner, const WindowAxis& h, const WindowAxis& w) {
  return {inner,    h.size,   w.size,    h.kernel,   h.stride, h.padding, h.dilation,
          w.kernel, w.stride, w.padding, w.dilation, h.count,  w.count,   0};
}

/// Number of rows of x that a row of windows reads.
int64_t strip_rows(const WindowAxis& h) { return std::min((h.kernel - 1) * h.dilation + 1, h.size); }

}  // namespace

void max_pool(const float* x, float* y, uint8_t* index, int64_t images, int64_t inner, const WindowAxis& h,
              const WindowAxis& w, int threads) {
  int64_t from = h.size * w.size * inner, to = w.count * inner;
  share(images * h.count, images * h.count * to * h.kernel * w.kernel, threads, [&](int64_t first, int64_t last, int) {
    PoolRow p = row_of(inner, h, w);
    for (int64_t k = first; k < last; ++k) {
      p.row = k % h.count;
      isa_kernels().max_pool_row(y + k * to, index + k * to, x + k / h.count * from, p);
    }
  });
}

int64_t pool_scratch(int64_t inner, const WindowAxis& h, const WindowAxis& w) {
  return (strip_rows(h) * w.size + w.count) * inner;
}

void max_pool(Storage storage, const void* x, void* y, uint8_t* index, int64_t images, int64_t inner,
              const WindowAxis& h, const WindowAxis& w, float* scratch, int threads) {
  int64_t line = w.size * inner, to = w.count * inner;
  auto load = isa_kernels().load(storage);
  auto store = isa_kernels().store(storage);
  share(images * h.count, images * h.count * to * h.kernel * w.kernel, threads, [&](int64_t begin, int64_t end, int k) {
    float* strip = scratch + k * pool_scratch(inner, h, w);
    float* pooled = strip + strip_rows(h) * line;
    PoolRow p = row_of(inner, h, w);
    for (int64_t row = begin; row < end; ++row) {
      // The strip is treated as an image with one row of windows at the same position.
      int64_t start = row % h.count * h.stride - h.padding, first = std::max<int64_t>(start, 0);
      p.height = std::min(start + (h.kernel - 1) * h.dilation + 1, h.size) - first;
      p.padding_h = first - start;
      const void* from = static_cast<const uint16_t*>(x) + (row / h.count * h.size + first) * line;
      load(strip, from, from, from, p.height * line);
      isa_kernels().max_pool_row(pooled, index + row * to, strip, p);
      if (y) store(static_cast<uint16_t*>(y) + row * to, pooled, pooled, pooled, to);
    }
  });
}

void max_pool_dx(const float* d, const uint8_t* index, float* dx, int64_t images, int64_t inner, const WindowAxis& h,
                 const WindowAxis& w, int threads) {
  int64_t from = h.count * w.count * inner, to = w.size * inner;
  share(images * h.size, images * h.size * to, threads, [&](int64_t first, int64_t last, int) {
    PoolRow p = row_of(inner, h, w);
    for (int64_t k = first; k < last; ++k) {
      int64_t image = k / h.size;
      p.row = k % h.size;
      isa_kernels().max_pool_dx_row(dx + k * to, d + image * from, index + image * from, p);
    }
  });
}

}  // namespace tutti::kernels
