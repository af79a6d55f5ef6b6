#include "kernels/cpu/random.h"

#include <algorithm>

#include "core/base/philox.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {

void random_bits(uint32_t* y, int64_t n, uint64_t seed, uint32_t step, uint32_t stream, int threads) {
  int64_t whole = n / 4;
  share(whole, n * 2, threads, [&](int64_t first, int64_t last, int) {
    isa_kernels().random(y + 4 * first, seed, step, stream, static_cast<uint64_t>(first), last - first);
  });
  auto rest = random_block(seed, step, stream, static_cast<uint64_t>(whole));
  for (int64_t k = whole * 4; k < n; ++k) y[k] = rest[static_cast<size_t>(k % 4)];
}

void iota(int32_t* y, int64_t outer, int64_t size, int64_t inner, int threads) {
  share(outer * size, outer * size * inner, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t k = first; k < last; ++k) std::fill_n(y + k * inner, inner, static_cast<int32_t>(k % size));
  });
}

}  // namespace tutti::kernels
