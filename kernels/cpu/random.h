// Generated values: random words and indices.
#pragma once
#include <cstdint>

namespace tutti::kernels {

/// y[e] = word e % 4 of Philox4x32-10 with key `seed` and counter (e / 4, step, stream), for e in [0, n).
void random_bits(uint32_t* y, int64_t n, uint64_t seed, uint32_t step, uint32_t stream, int threads);
/// y[a, i, b] = i, for a < outer, i < size, b < inner.
void iota(int32_t* y, int64_t outer, int64_t size, int64_t inner, int threads);

}  // namespace tutti::kernels
