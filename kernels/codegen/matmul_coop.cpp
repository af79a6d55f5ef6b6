// Products of f16 on cooperative matrices.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/rounding.h"
#include "kernels/codegen/matmul.h"

namespace tutti::codegen {
namespace {

constexpr int64_t tile = 64, step = 32;
constexpr uint32_t teams = 4;
constexpr uint64_t shared_bytes = uint64_t{4} * (2 * 1280 + 4352);  // of the kernel's three arrays
constexpr int64_t rounds = 140;  // of a work-item per 16 of k, with the smallest subgroups and shapes

/// The largest of the target's shapes that divide what a subgroup multiplies, or one without elements.
CooperativeShape shape_for(const Target& t) {
  CooperativeShape best;
  for (const CooperativeShape& s : t.cooperative) {
    const bool divides = std::ranges::all_of(std::initializer_list<uint32_t>{s.m, s.n, s.k},
                                             [](uint32_t n) { return n >= 8 && step % n == 0; });
    if (divides && s.m * s.n * s.k > best.m * best.n * best.k) best = s;
  }
  return best;
}

/// Sets how an operand's tile is copied and read. `along`: its rows in memory, `pitch` elements apart, go along k;
/// `by_rows`: they are the rows of its matrices.
void set_tile(Kernel& k, const std::string& name, bool along, bool by_rows, int64_t pitch, const Shape& batches) {
  const std::string lower = name == "A" ? "a" : "b";
  k.set(name + "_ORDER", by_rows ? "0u" : "1u");
  k.set(name + "_PAIRS", (along ? step : tile) / 2);
  const std::string row = along ? (name == "A" ? "m" : "n") : "k", column = along ? "k" : (name == "A" ? "m" : "n");
  k.set(name + (name == "A" ? "_AT(m,k)" : "_AT(k,n)"),
        fmt::format("({}) * ({}_PAIRS + 4) + ({}) / 2", row, name, column));
  k.set(name + "_WORD(at)", begins_at_multiples(2, pitch, batches)
                                ? fmt::format("{}_word((at) >> 1)", lower)
                                : fmt::format("({0}(at) | {0}((at) + 1) << 16)", lower));
}

/// Lets the groups at the left or upper edge of y sum the operand. `whole`: k has one part.
void set_sums(Kernel& k, const Matmul& p, bool whole) {
  if (sums_of(p) == 0) return;
  k.set("ADDS", p.sum_a ? "column == 0" : "row == 0");
  k.set("ADDS_FROM", p.sum_a ? "row" : "column");
  k.set("ADDS_END", p.sum_a ? "M" : "N");
  const bool along = p.sum_a ? !p.ta : p.tb;
  k.set("SUM_OF(n,k)", fmt::format("COOP_ELEMENT(tile_{0}, ({2}) * 2 * ({1}_PAIRS + 4) + ({3}))", p.sum_a ? "a" : "b",
                                   p.sum_a ? "A" : "B", along ? "n" : "k", along ? "k" : "n"));
  k.set("STORE_SUM(i,v)", store_sum(p, "i", whole));
}

}  // namespace

bool fits_coop(const Target& t, const Matmul& p) {
  return !t.exact && !t.cpu_like && !t.language->cooperative.empty() && t.half_storage && p.dtype == DType::f16 &&
         shape_for(t).m > 0 && std::has_single_bit(t.subgroup) && t.subgroup >= 8 &&
         teams * t.subgroup <= t.max_local && t.local_bytes >= shared_bytes && std::min({p.m, p.n, p.k}) >= 8;
}

LaunchList matmul_coop(const Target& t, const Matmul& p) {
  const CooperativeShape shape = shape_for(t);
  const int64_t groups = num_elements(p.batch) * ceil_div(p.m, tile) * ceil_div(p.n, tile);
  const Parts parts = parts_of(t, p, groups, 4 * int64_t{t.compute_units}, rounds);
  const Element e = element_of(p.dtype);
  Kernel k = portable("matmul_coop",
                      {{"A", Element::raw16}, {"T", e}, {"Y", parts.count > 1 ? Element::f32 : e}, {"S", sums_as(p)}});
  k.local[0] = teams * t.subgroup;
  k.words = fill(t.language->cooperative,
                 {{"m", std::to_string(shape.m)}, {"n", std::to_string(shape.n)}, {"k", std::to_string(shape.k)}});
  set_tiles(k, p, tile);
  k.set("COOP_M", shape.m);
  k.set("COOP_N", shape.n);
  k.set("COOP_K", shape.k);
  set_tile(k, "A", !p.ta, !p.ta, p.ta ? p.m : p.k, p.a_batch);
  set_tile(k, "B", p.tb, !p.tb, p.tb ? p.k : p.n, p.b_batch);
  k.set("Y_PAIR(at,x,z)", store_pair(p, parts.count == 1));
  set_sums(k, p, parts.count == 1);
  LaunchList list;
  launch_product(t, list, p, std::move(k), parts, {0, 1}, groups, false);
  return list;
}

}  // namespace tutti::codegen
