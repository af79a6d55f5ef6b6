#include "kernels/cpu/quantized.h"

#include "core/geometry/quantized.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {

size_t QuantizedProduct::scratch_bytes(int threads) const {
  int64_t blocks = inputs / quantized_block;
  int64_t floats = rows * (inputs + blocks) + 2 * blocks * threads + (storage == Storage::word ? 0 : rows * features);
  return static_cast<size_t>(floats) * sizeof(float);
}

void QuantizedProduct::run(const void* x, const uint8_t* quants, const uint16_t* scales, const uint16_t* mins, void* y,
                           std::byte* scratch, int threads) const {
  const IsaKernels& isa = isa_kernels();
  const int64_t blocks = inputs / quantized_block, row_bytes = inputs * bits / 8;
  auto* wide = reinterpret_cast<float*>(scratch);
  float *sums = wide + rows * inputs, *of_threads = sums + rows * blocks, *out = of_threads + 2 * blocks * threads;
  bool narrow = storage != Storage::word;
  const float* from = narrow ? wide : static_cast<const float*>(x);
  if (narrow)
    isa.load(storage)(wide, x, nullptr, nullptr, rows * inputs);
  else
    out = static_cast<float*>(y);
  for (int64_t b = 0; b < rows * blocks; ++b)
    sums[b] = isa.fold_f32(ReduceOp::sum, from + b * quantized_block, quantized_block);
  auto product = bits == 4 ? isa.quantized_row_4 : isa.quantized_row_8;
  share(features, rows * features * inputs / 8, threads, [&](int64_t first, int64_t last, int thread) {
    float *scale = of_threads + 2 * blocks * thread, *min = scale + blocks;
    for (int64_t j = first; j < last; ++j) {
      isa.load(Storage::f16)(scale, scales + j * blocks, nullptr, nullptr, blocks);
      isa.load(Storage::f16)(min, mins + j * blocks, nullptr, nullptr, blocks);
      product(out + j, features, quants + j * row_bytes, scale, min, from, sums, blocks, rows);
    }
  });
  if (!narrow) return;
  isa.store(storage)(y, out, nullptr, nullptr, rows * features);
}

}  // namespace tutti::kernels
