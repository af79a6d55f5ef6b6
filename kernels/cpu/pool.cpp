#include "kernels/cpu/pool.h"

#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

PoolRow row_of(int64_t inner, const WindowAxis& h, const WindowAxis& w) {
  return {inner,    h.size,   w.size,    h.kernel,   h.stride, h.padding, h.dilation,
          w.kernel, w.stride, w.padding, w.dilation, h.count,  w.count,   0};
}

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
