// Products with block-quantized weights.
#include <algorithm>

#include "core/geometry/quantized.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

LaunchList quantized_matmul(const Target& t, DType type, DType scales, int64_t rows, int64_t features, int64_t inputs,
                            int64_t bits, int64_t group) {
  int64_t total = rows * features, blocks = inputs / quantized_block;
  if (total == 0) return {};
  bool lanes = t.cpu_like && t.language->pointers;
  Kernel k =
      portable(lanes ? "quantized_lanes" : "quantized_rows", {{"T", element_of(type)}, {"S", element_of(scales)}});
  k.set("TOTAL", total);
  k.set("FEATURES", features);
  k.set("BLOCKS", blocks);
  k.set("BITS", bits);
  k.set("PARTS", quantized_block / group);
  k.elements = static_cast<uint64_t>(std::max(rows, features) * std::max<int64_t>(inputs, 1) + total);
  if (!lanes) {
    uint32_t span = t.cpu_like ? 1 : std::min(t.max_local, 32u);
    k.set("SPAN", int64_t{span});
    k.local = {t.cpu_like ? std::min(t.max_local, 64u) : span, 1, 1};
    return {{dispatch_items(t, std::move(k), total * span, {0, 1, 2, 3, 4})}, {}};
  }
  return {{dispatch(t, std::move(k), static_cast<uint64_t>(total), {0, 1, 2, 3, 4})}, {}};
}

}  // namespace tutti::codegen
