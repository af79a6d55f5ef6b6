// Matrix products in OpenCL C and C++ for devices whose work-items are loop iterations of a CPU: one operand packed
// into panels, the results in named vector registers (matmul_panels.k).
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "kernels/codegen/matmul.h"

namespace tutti::codegen {
namespace {

/// A product whose second operand is packed into column panels: y[i, j], or its transpose if that packs less.
struct Panels {
  int64_t m, n, rows, blocks, panels;
  bool swapped;
  /// Packs the rows too, because with large strides along k they would evict each other from the cache; not for one or
  /// two panels, which read them as seldom as the packing does.
  bool both = false;
  double cost = 0;  ///< estimated nanoseconds
};

constexpr int64_t most_rows = 8;
constexpr double packing = 0.3;  // nanoseconds per element of a panel

/// Nanoseconds of one result: of its multiply-adds, and of storing it.
double result_cost(int64_t depth, bool swapped) { return static_cast<double>(depth) * 0.008 + (swapped ? 0.6 : 0.2); }

Panels plan(int64_t m, int64_t n, int64_t k, bool turned, int64_t packed_matrices, int64_t row_matrices,
            int64_t batches, int64_t wide, bool swapped) {
  Panels p{m, n, 0, ceil_div(m, most_rows), ceil_div(n, wide), swapped};
  p.rows = ceil_div(m, p.blocks);
  p.both = turned && k >= 384 && p.panels > 2;
  double rows = static_cast<double>(p.blocks * p.rows), columns = static_cast<double>(p.panels * wide),
         depth = static_cast<double>(k);
  p.cost = static_cast<double>(batches) * rows * columns * result_cost(k, swapped) +
           static_cast<double>(packed_matrices) * columns * depth * packing +
           (p.both ? static_cast<double>(row_matrices) * rows * depth * 0.4 : 0);
  return p;
}

/// Panels of `wide` columns of the operand `from`, into the buffer `to`.
Launch pack(const Target& t, const Matmul& p, Element e, int from, int to, const Shape& steps, int64_t matrices,
            int64_t columns, bool turned, int64_t panels, int64_t wide) {
  Kernel k = portable("matmul_pack", {{"T", e}});
  k.set("N", columns);
  k.set("K", p.k);
  k.set("BATCHES", matrices);
  k.set("PANELS", panels);
  k.set("WIDE", wide);
  k.set("ROW", turned ? 1 : columns);
  k.set("COLUMN", turned ? p.k : 1);
  k.set("B_BASE(g)", matrices == 1 ? "IDX(0)" : batch_base(p.batch, steps, k.as_number()));
  int64_t elements = matrices * panels * p.k * wide;
  k.elements = static_cast<uint64_t>(std::max(elements, reach(p.batch, steps, p.k * columns)));
  k.work = packing * static_cast<double>(wide);
  return dispatch_items(t, std::move(k), matrices * panels * p.k, {from, to});
}

}  // namespace

LaunchList matmul_panels(const Target& t, const Matmul& p) {
  int64_t batches = num_elements(p.batch);
  constexpr int64_t wide = 32;
  auto matrices = [&](const Shape& steps) {
    return std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 0; }) ? 1 : batches;
  };
  int64_t a_matrices = matrices(p.a_batch), b_matrices = matrices(p.b_batch);
  Panels straight = plan(p.m, p.n, p.k, p.ta, b_matrices, a_matrices, batches, wide, false);
  Panels turned = plan(p.n, p.m, p.k, !p.tb, a_matrices, b_matrices, batches, wide, true);
  const Panels& c = turned.cost < straight.cost ? turned : straight;
  // The operand whose elements are broadcast over a row, and the packed one.
  int spread = c.swapped ? 1 : 0, packed = 1 - spread;
  const Shape &spread_batch = c.swapped ? p.b_batch : p.a_batch, &packed_batch = c.swapped ? p.a_batch : p.b_batch;
  int64_t packed_matrices = c.swapped ? a_matrices : b_matrices;
  bool spread_turned = c.swapped ? !p.tb : p.ta;  // stored [k, rows]
  bool packed_turned = c.swapped ? !p.ta : p.tb;  // stored [columns, k]
  Element e = element_of(p.dtype);
  LaunchList list;
  int y = p.bias ? 3 : 2, panels = y + 1;
  int64_t panel_elements = packed_matrices * c.panels * p.k * wide;
  list.scratch_bytes = {static_cast<uint64_t>(panel_elements) * 4};

  list.launches.push_back(
      pack(t, p, e, packed, panels, packed_batch, packed_matrices, c.n, packed_turned, c.panels, wide));
  int64_t row_matrices = c.swapped ? b_matrices : a_matrices, row_elements = row_matrices * c.blocks * p.k * c.rows;
  int rows = panels + 1;
  if (c.both) {
    list.scratch_bytes.push_back(static_cast<uint64_t>(row_elements) * 4);
    list.launches.push_back(
        pack(t, p, e, spread, rows, spread_batch, row_matrices, c.m, !spread_turned, c.blocks, c.rows));
  }

  int64_t groups = batches * c.blocks * c.panels;
  Parts parts = parts_of(t, p, groups, int64_t{4} * t.compute_units);
  bool whole = parts.count == 1;
  Kernel k = portable("matmul_panels", {{"T", e}, {"A", c.both ? Element::f32 : e}, {"Y", whole ? e : Element::f32}});
  k.set("M", c.m);
  k.set("N", c.n);
  k.set("K", p.k);
  k.set("GROUPS", groups);
  k.set("ROWS", c.rows);
  k.set("BLOCKS", c.blocks);
  k.set("PANELS", c.panels);
  k.set("WIDE", wide);
  int64_t step = c.both ? c.rows : spread_turned ? c.m : 1, row = spread_turned ? 1 : p.k;
  if (c.both) {
    k.set("A_BASE(g)",
          fmt::format("(({} + block) * {})", row_matrices == 1 ? "IDX(0)" : fmt::format("(g) * {}", k.number(c.blocks)),
                      k.number(p.k * c.rows)));
    k.set("ROW_AT(r)", "(r)");
  } else {
    k.set("A_BASE(g)", batch_base(p.batch, spread_batch, k.as_number()));
    k.set("ROW_AT(r)", fmt::format("(IDX(row + (r) < M ? row + (r) : M - 1) * {})", row));
    if (!spread_turned) {  // contiguous rows with known distance; otherwise their addresses are kept in vectors
      k.set("M", std::to_string(c.m));
      k.set("BLOCKS", std::to_string(c.blocks));
    }
  }
  k.set("P_BASE(g)", packed_matrices == 1 ? "IDX(0)" : "(g)");
  k.set("Y_ROW", c.swapped ? 1 : c.n);
  k.set("Y_COLUMN", c.swapped ? c.m : 1);
  bool direct = !c.swapped && (p.dtype == DType::f32 || !whole);
  k.set("DIRECT", direct ? "true" : "false");
  k.set("AT_STEP", step);
  k.set("SPLAT(s)", t.language->splat16);
  k.set("ADD_PRODUCT(a,b,c)", t.exact ? "((c) + (a) * (b))" : "fma(a, b, c)");
  std::string sum = p.bias && whole ? "(v + vload16(0, bias_ + (j)))" : "v";
  if (p.relu && whole) sum = fmt::format("({0} < SPLAT(0.0f) ? SPLAT(0.0f) : {0})", sum);
  k.set("STORE(e,v,j)", direct ? fmt::format("vstore16({}, 0, y_ + (e))", sum) : "{}");
  k.elements = static_cast<uint64_t>(std::max(panel_elements, row_elements));
  k.work = static_cast<double>(c.rows * wide) * result_cost(parts.length, c.swapped);
  launch_product(t, list, p, std::move(k), parts, {c.both ? rows : spread, panels}, groups, c.swapped);
  return list;
}

}  // namespace tutti::codegen
