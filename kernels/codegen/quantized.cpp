// Products with weights in blocks of quants.
#include "core/geometry/quantized.h"
#include "core/base/rounding.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

LaunchList quantized_matmul(const Target& t, DType type, int64_t rows, int64_t features, int64_t inputs, int64_t bits) {
  int64_t total = rows * features, blocks = inputs / quantized_block;
  if (total == 0) return {};
  Kernel k = portable("quantized_rows", {{"T", element_of(type)}});
  uint32_t span = t.cpu_like ? 1 : std::min(t.max_local, 32u);
  k.set("TOTAL", total);
  k.set("FEATURES", features);
  k.set("BLOCKS", blocks);
  k.set("BITS", bits);
  k.set("SPAN", span);
  k.elements = static_cast<uint64_t>(std::max({rows, features}) * std::max<int64_t>(inputs, 1) + total);
  k.local = {t.cpu_like ? 1 : span, 1, 1};
  return {{dispatch(t, std::move(k), static_cast<uint64_t>(total), {0, 1, 2, 3, 4})}, {}};
}

}  // namespace tutti::codegen
