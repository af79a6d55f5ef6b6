#include "kernels/cpu/quantized.h"

#include "core/geometry/quantized.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {

size_t QuantizedProduct::scratch_bytes(int threads) const {
  int64_t groups = inputs / group;
  int64_t floats = rows * (inputs + groups) + 2 * groups * threads + (storage == Storage::word ? 0 : rows * features);
  return static_cast<size_t>(floats) * sizeof(float);
}

void QuantizedProduct::run(const void* x, const uint8_t* quants, const void* scale_data, const void* min_data, void* y,
                           std::byte* scratch, int threads) const {
  const IsaKernels& isa = isa_kernels();
  const int64_t groups = inputs / group, row_bytes = inputs * bits / 8;
  auto* wide = reinterpret_cast<float*>(scratch);
  float *sums = wide + rows * inputs, *of_threads = sums + rows * groups, *out = of_threads + 2 * groups * threads;
  bool narrow = storage != Storage::word;
  const float* from = narrow ? wide : static_cast<const float*>(x);
  if (narrow)
    isa.load(storage)(wide, x, nullptr, nullptr, rows * inputs);
  else
    out = static_cast<float*>(y);
  for (int64_t g = 0; g < rows * groups; ++g) sums[g] = isa.fold_f32(ReduceOp::sum, from + g * group, group);
  auto product = bits == 4 ? isa.quantized_row_4 : isa.quantized_row_8;
  share(features, rows * features * inputs / 8, threads, [&](int64_t first, int64_t last, int thread) {
    // Row j of scales or minimums in f32: as it lies, or converted into `room`.
    auto row = [&](const void* data, int64_t j, float* room) -> const float* {
      if (scales == Storage::word) return static_cast<const float*>(data) + j * groups;
      isa.load(scales)(room, static_cast<const uint16_t*>(data) + j * groups, nullptr, nullptr, groups);
      return room;
    };
    float* room = of_threads + 2 * groups * thread;
    for (int64_t j = first; j < last; ++j) {
      const float *scale = row(scale_data, j, room), *min = row(min_data, j, room + groups);
      product(out + j, features, quants + j * row_bytes, scale, min, from, sums, inputs / quantized_block,
              quantized_block / group, rows);
    }
  });
  if (!narrow) return;
  isa.store(storage)(y, out, nullptr, nullptr, rows * features);
}

}  // namespace tutti::kernels
