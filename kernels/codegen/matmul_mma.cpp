// Products of f16 and bf16 on tensor cores.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "kernels/codegen/matmul.h"

namespace tutti::codegen {
namespace {

constexpr int64_t step = 32;  // of k

/// Sets how an operand's tile is copied: `rows` of `columns` elements, from a matrix with rows of `pitch` elements and
/// batches that begin at multiples of `batches`.
void set_tile(Kernel& k, const char* name, int64_t rows, int64_t columns, int64_t pitch, const Shape& batches) {
  const std::string upper = name == std::string_view("a") ? "A" : "B";
  k.set(upper + "_ROWS", rows);
  k.set(upper + "_CHUNKS", columns / 8);
  std::string words;
  for (int n = 0; n < 8; ++n)
    words += fmt::format("{}(inside) && (left) > {} ? {}((at) + {}) : 0.0f{}",
                         n % 2 ? ", "
                         : n   ? ", PACK("
                               : "PACK(",
                         n, name, n, n % 2 ? ")" : "");
  k.set(upper + "_COPY(tile,to,at,inside,left)",
        begins_at_multiples(8, pitch, batches) ? fmt::format("COPY16(tile, to, {}, at, (inside) && (left) > 0)", name)
                                               : fmt::format("tile[to] = UINT4({})", words));
}

/// Lets the groups at the left or upper edge of y sum the operand. `whole`: k has one part.
void set_sums(Kernel& k, const Matmul& p, bool whole) {
  if (sums_of(p) == 0) return;
  k.set("ADDS_A", p.sum_a ? "column == 0" : "false");
  k.set("ADDS_B", p.sum_b ? "row == 0" : "false");
  k.set("STORE_SUM(i,v)", store_sum(p, "i", whole));
}

}  // namespace

bool fits_mma(const Target& t, const Matmul& p) {
  return t.tensor_cores && !t.language->tensor_cores.empty() && !t.exact && is_narrow(p.dtype) && t.max_local >= 256 &&
         t.local_bytes >= 40960 && std::min({p.m, p.n, p.k}) >= 8;
}

LaunchList matmul_mma(const Target& t, const Matmul& p) {
  auto groups_of = [&](int64_t tile) { return num_elements(p.batch) * ceil_div(p.m, tile) * ceil_div(p.n, tile); };
  // Large tiles read less, but small ones are more, and occupy more units.
  const int64_t tile = groups_of(128) >= t.compute_units ? 128 : 64, groups = groups_of(tile);
  const Parts parts = parts_of(t, p, groups, 2 * int64_t{t.compute_units});
  const Element e = element_of(p.dtype);
  Kernel k = portable("matmul_mma", {{"T", e}, {"Y", parts.count > 1 ? Element::f32 : e}, {"S", sums_as(p)}});
  k.local[0] = static_cast<uint32_t>(2 * tile);
  // Two tiles of an operand; a tile along k has tile * 5 chunks, one across it fewer.
  for (const char* name : {"tile_a", "tile_b"}) k.shared.push_back(fmt::format("uint4 {}[{}]", name, 10 * tile));
  k.registers = tile == 128 ? 168 : 120;
  k.words = words_for_tensor_cores(t, p.dtype);
  set_tiles(k, p, tile);
  k.set("TILE_M", tile);
  k.set("TILE_N", tile);
  set_tile(k, "a", p.ta ? step : tile, p.ta ? tile : step, p.ta ? p.m : p.k, p.a_batch);
  set_tile(k, "b", p.tb ? tile : step, p.tb ? step : tile, p.tb ? p.k : p.n, p.b_batch);
  k.set("Y_PAIR(at,x,z)", store_pair(p, parts.count == 1));
  set_sums(k, p, parts.count == 1);
  LaunchList list;
  launch_product(t, list, p, std::move(k), parts, {0, 1}, groups, false);
  return list;
}

}  // namespace tutti::codegen
