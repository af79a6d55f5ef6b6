// Matrix products for devices on which texel buffers are faster than storage buffers: both operands packed into panels,
// a register tile per work-item (matmul_texels.k).
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "kernels/codegen/matmul.h"

namespace tutti::codegen {
namespace {

constexpr int64_t lanes = 8;

/// The tile of a work-item, and the arrangement of a group's work-items.
struct Tile {
  int64_t quads = 4, vectors = 2, steps = 4;
  int64_t lanes_n = lanes;
  int64_t high() const { return quads * 4 * (lanes / lanes_n); }
  int64_t wide() const { return vectors * 4 * lanes_n; }
};

/// The arrangement with the least padding.
Tile choose(const Matmul& p) {
  Tile best;
  auto area = [&](const Tile& t) { return align_up(p.m, t.high()) * align_up(p.n, t.wide()); };
  for (int64_t n : {4, 2, 1}) {
    Tile t = best;
    t.lanes_n = n;
    if (area(t) < area(best)) best = t;
  }
  return best;
}

/// One operand, stored with lines along k or across it.
struct Side {
  int input;           ///< the caller's buffer
  int64_t size;        ///< rows of a, columns of b
  bool along;          ///< stored as [size, k]
  const Shape& batch;  ///< batch strides in elements
  int64_t panel;       ///< rows or columns per panel
  int64_t matrices = 1;
};

Launch pack(const Target& t, const Matmul& p, const Side& s, int64_t depth, int to) {
  Element e = element_of(p.dtype);
  Kernel k = portable("matmul_blocks", {{"T", e}});
  int64_t length = s.along ? p.k : s.size, panels = ceil_div(s.size, s.panel);
  int64_t given = reach(p.batch, s.batch, p.k * s.size), elements = s.matrices * panels * depth * s.panel;
  bool whole = e == Element::f32 && length % 4 == 0 &&
               std::all_of(s.batch.begin(), s.batch.end(), [](int64_t x) { return x % 4 == 0; });
  k.set("DEPTH", depth);
  k.set("BATCHES", s.matrices);
  k.set("PANELS", panels);
  k.set("WIDE", s.panel);
  k.set("TURNED", s.along ? "true" : "false");
  k.set("WHOLE", whole ? "true" : "false");
  k.set("FOUR(i)", whole ? "b4((i) / 4)" : "zero");
  k.set("LINES", s.along ? s.size : p.k);
  k.set("LENGTH", length);
  k.set("B_BASE(g)", s.matrices == 1 ? "IDX(0)" : batch_base(p.batch, s.batch, as_literal));
  k.set("COUNT", 4);
  k.read_as_texels(t, "b", given);
  k.elements = static_cast<uint64_t>(std::max(elements, given));
  return dispatch_items(t, std::move(k), elements / 16, {s.input, to});
}

int64_t matrices(const Matmul& p, const Shape& steps) {
  return std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 0; }) ? 1 : num_elements(p.batch);
}

int64_t depth_of(const Matmul& p, const Tile& tile) { return align_up(p.k, tile.steps); }

/// Number of elements of all panels of an operand.
int64_t panel_elements(const Matmul& p, const Tile& tile, const Side& s) {
  return s.matrices * align_up(s.size, s.panel) * depth_of(p, tile);
}

Side side_a(const Matmul& p, const Tile& tile) {
  return {0, p.m, !p.ta, p.a_batch, tile.high(), matrices(p, p.a_batch)};
}
Side side_b(const Matmul& p, const Tile& tile) {
  return {1, p.n, p.tb, p.b_batch, tile.wide(), matrices(p, p.b_batch)};
}

}  // namespace

bool fits_texels(const Target& t, const Matmul& p) {
  Tile tile = choose(p);
  int64_t most = std::max(panel_elements(p, tile, side_a(p, tile)), panel_elements(p, tile, side_b(p, tile)));
  // Panels are written to storage buffers and read as texels.
  return static_cast<uint64_t>(most) <= std::min(t.max_buffer_bytes / 4, t.max_texels * 4);
}

LaunchList matmul_texels(const Target& t, const Matmul& p) {
  Tile tile = choose(p);
  Side a = side_a(p, tile), b = side_b(p, tile);
  int64_t depth = depth_of(p, tile), tiles_m = ceil_div(p.m, a.panel), tiles_n = ceil_div(p.n, b.panel);
  int64_t groups = num_elements(p.batch) * tiles_m * tiles_n;
  int64_t a_elements = panel_elements(p, tile, a), b_elements = panel_elements(p, tile, b);

  LaunchList list;
  int at = p.bias ? 4 : 3;
  list.scratch_bytes = {static_cast<uint64_t>(a_elements) * 4, static_cast<uint64_t>(b_elements) * 4};
  list.launches.push_back(pack(t, p, a, depth, at));
  list.launches.push_back(pack(t, p, b, depth, at + 1));
  Parts parts = parts_of(t, p, groups, int64_t{4} * t.compute_units);
  bool whole = parts.count == 1;
  Element e = element_of(p.dtype);
  Kernel k = portable("matmul_texels", {{"T", e}, {"Y", whole ? e : Element::f32}});
  k.local = {lanes, 1, 1};
  k.set("M", p.m);
  k.set("N", p.n);
  k.set("DEPTH", depth);
  k.set("GROUPS", groups);
  k.set("TILES_M", tiles_m);
  k.set("TILES_N", tiles_n);
  k.set("LANES_N", tile.lanes_n);
  k.set("HIGH", a.panel);
  k.set("WIDE", b.panel);
  k.set("QUADS", tile.quads);
  k.set("VECTORS", tile.vectors);
  k.set("STEPS", tile.steps);
  k.set("A_OF(g)", a.matrices == 1 ? "IDX(0)" : "(g)");
  k.set("B_OF(g)", b.matrices == 1 ? "IDX(0)" : "(g)");
  bool direct = p.n % 4 == 0 && (!whole || p.dtype == DType::f32);
  std::string sum = whole && p.bias ? "((v) + bias4(j))" : "(v)";
  if (whole && p.relu) sum = fmt::format("mix({0}, vec4(0.0f), lessThan({0}, vec4(0.0f)))", sum);
  k.set("DIRECT", direct ? "true" : "false");
  k.set("STORE(at,v,j)", direct ? fmt::format("y4_set(at, {})", sum) : "{}");
  k.read_as_texels(t, "a", a_elements);
  k.read_as_texels(t, "b", b_elements);
  k.elements = static_cast<uint64_t>(std::max(a_elements, b_elements));
  launch_product(t, list, p, std::move(k), parts, {at, at + 1}, groups, false);
  return list;
}

}  // namespace tutti::codegen
