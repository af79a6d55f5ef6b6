// Convolutions for devices whose work-items are loop iterations of a CPU: the padded image in scratch memory, the other
// operand packed into panels, the results in named vector registers (conv_panels.k).
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "kernels/codegen/conv.h"

namespace tutti::codegen {
namespace {

/// Split of rows into blocks, one per group.
struct Rows {
  int64_t count = 0, blocks = 0;
  /// Rows whose elements have fixed distances, and number of its blocks; 0: none.
  int64_t segment = 0, per_segment = 0;
  std::vector<int64_t> distance;  ///< offsets of a block's rows from its first
};

/// Memory layout of a product's image.
struct Image {
  bool padded = true;
  int64_t height = 0, width = 0, plane = 0, base = 0, elements = 0;
};

/// What the padded image holds along each axis.
std::array<ConvAxis, 2> frame_of(const ConvProduct& p) { return p.frame.value_or(std::array{p.y, p.x}); }

Image image_of(const ConvProduct& p) {
  auto [y, x] = frame_of(p);
  Image m{true, y.span(), x.span()};
  // An odd number of cache lines: rows of adjacent planes do not evict each other from the cache.
  m.plane = (ceil_div(m.height * m.width, 16) | 1) * 16;
  m.base = (p.y.offset - y.offset) * m.width + p.x.offset - x.offset;
  int64_t top = p.y.offset, left = p.x.offset;
  bool inside = top >= 0 && left >= 0 && top + p.y.span() <= p.y.size && left + p.x.span() <= p.x.size;
  if (inside && p.y.step == 1 && p.x.step == 1 && p.dtype == DType::f32)
    m = {false, p.y.size, p.x.size, p.y.size * p.x.size, top * p.x.size + left};
  m.elements = p.planes * m.plane;
  return m;
}

/// Blocks of at most `most` rows; rows share one address computation if that wastes little.
Rows rows_of(const ConvProduct& p, const Image& m, int64_t most, bool fixed) {
  int64_t rows = p.rows(), positions = p.positions();
  for (int64_t segment : {positions, p.x.rows}) {
    int64_t blocks = ceil_div(segment, most), count = ceil_div(segment, blocks);
    bool one_line = segment == p.x.rows;
    if (!one_line && blocks > 1) {  // blocks of whole lines
      int64_t lines = std::clamp<int64_t>(most / p.x.rows, 1, p.y.rows);
      while (p.y.rows % lines) --lines;
      if (lines == 1) continue;
      count = lines * p.x.rows, blocks = p.y.rows / lines;
    }
    if (!fixed || count < 5 || count > most || count * blocks * 10 > segment * 11) continue;
    if (!m.padded && count * blocks != segment) continue;  // would read past the image
    Rows r{count, rows / segment * blocks, segment, blocks, {}};
    for (int64_t n = 0; n < count; ++n)
      r.distance.push_back((one_line ? 0 : n / p.x.rows) * p.y.row_step * m.width +
                           (one_line ? n : n % p.x.rows) * p.x.row_step);
    return r;
  }
  int64_t blocks = ceil_div(rows, fixed ? 10 : most);
  return {ceil_div(rows, blocks), blocks, 0, 0, {}};
}

Launch pad(const Target& t, const ConvProduct& p, const Image& m, int to) {
  Kernel k = portable("conv_pad", {{"T", element_of(p.dtype)}});
  auto [y, x] = frame_of(p);
  Pixels pixels = pixels_of(x, 1, 0, m.width);
  bool apart = x.step > 1;
  const std::pair<const char*, int64_t> numbers[] = {{"PLANES", p.planes},
                                                     {"PLANE", m.plane},
                                                     {"H", p.y.size},
                                                     {"W", p.x.size},
                                                     {"HP", m.height},
                                                     {"WP", m.width},
                                                     {"MIN_Y", y.offset},
                                                     {"STEP_Y", y.step},
                                                     {"STEP_X", x.step},
                                                     {"FROM", pixels.from},
                                                     {"TO", pixels.to},
                                                     {"COUNT", pixels.count},
                                                     {"LEFT", apart ? m.width : pixels.to},
                                                     {"RIGHT", apart ? m.width : pixels.to + pixels.count}};
  for (auto& [name, value] : numbers) k.set(name, value);
  k.elements = static_cast<uint64_t>(std::max(m.elements, p.image_elements()));
  return dispatch_items(t, std::move(k), p.planes * m.height, {0, to});
}

void vector_words(const Language& language, Kernel& k, const Rows& rows, const std::string& last_row) {
  k.set("ADDRESS", language.address);  // must not wrap, so that a row is an address displacement
  k.set("VEC", "float16");
  k.set("ZERO", "SPLAT(0.0f)");
  k.set("SPLAT(s)", language.splat16);
  k.set("PANEL(p)", "panels16(p)");
  k.set("TILE(at,v)", "vstore16(v, 0, tile + (at))");
  k.set("LOAD_A", "{}");
  k.set("ATS", rows.segment ? 1 : rows.count);
  k.set("AT(t)", rows.segment ? "ROW(t)" : fmt::format("(ROW(t) < {0} ? ROW(t) : {0})", last_row));
  for (int64_t r = 0; r < rows.count; ++r)
    k.set(fmt::format("AGET_{}", r), rows.segment
                                         ? fmt::format("a(at0 + off + {})", rows.distance[static_cast<size_t>(r)])
                                         : fmt::format("a(at{} + off)", r));
}

void glsl_words(Kernel& k, const Rows& rows, const std::string& last_row) {
  k.subgroups = true;
  k.local = {8, 1, 1};
  k.set("ADDRESS", "idx");
  k.set("VEC", "vec4");
  k.set("ZERO", "vec4(0.0f)");
  k.set("SPLAT(s)", "vec4(s)");
  k.set("PANEL(p)", "panels4((p) * 8 + lane)");
  k.set("TILE(at,v)", "tile[at] = v.x; tile[at + 1] = v.y; tile[at + 2] = v.z; tile[at + 3] = v.w");
  int64_t loads = ceil_div(rows.count, 8);
  std::string load;
  for (int64_t n = 0; n < loads; ++n) load += fmt::format("{}t{} = a(at{} + off)", n ? ", " : "float ", n, n);
  k.set("LOAD_A", load + ";");
  k.set("ATS", loads);
  k.set("AT(t)", fmt::format("(ROW(lane + 8 * t) < {0} ? ROW(lane + 8 * t) : {0})", last_row));
  for (int64_t r = 0; r < rows.count; ++r)
    k.set(fmt::format("AGET_{}", r), fmt::format("subgroupBroadcast(t{}, {}u)", r / 8, r % 8));
}

}  // namespace

Launch pack_panels(const Target& t, const ConvProduct& p, Kernel k, int64_t panels, int64_t depth, int64_t wide,
                   int to) {
  int64_t strips = ceil_div(depth, 64), groups = p.groups * panels * strips;
  k.set("TOTAL", groups);
  k.set("K", depth);
  k.set("STRIPS", strips);
  k.set("PANELS", panels);
  k.set("WIDE", wide);
  k.set("FOURS", wide / 4);
  k.set("PUT(at,v0,v1,v2,v3)",
        t.language->subgroups
            ? "panels4_set((at) / 4, vec4(v0, v1, v2, v3))"
            : "panels_set(at, v0); panels_set(at + 1, v1); panels_set(at + 2, v2); panels_set(at + 3, v3)");
  k.elements = static_cast<uint64_t>(std::max(p.groups * panels * depth * wide, p.b_elements));
  return dispatch(t, std::move(k), static_cast<uint64_t>(groups), {1, to});
}

std::string image_address(const ConvProduct& p, const Write& n, int64_t row_plane, int64_t group_plane, int64_t plane,
                          int64_t width, int64_t base) {
  std::string line = n(p.x.rows);
  return fmt::format("(((m) / {} * {} + IDX(g) * {}) * {} + (m) / {} % {} * {} + (m) % {} * {} + {})", n(p.positions()),
                     n(row_plane), n(group_plane), n(plane), line, n(p.y.rows), n(p.y.row_step * width), line,
                     n(p.x.row_step), n(base));
}

int64_t part_of(const Target& t, std::array<int64_t, 3> rounds, int64_t groups, int64_t bytes) {
  constexpr int64_t cache = 1 << 18;
  int64_t planes = rounds[0], most = longest_part(t, 2 + rounds[1] * (2 + rounds[2]), 1);
  int64_t parts = std::min(ceil_div(4 * int64_t{t.compute_units}, groups), planes);
  // Panels do not fit into the cache, so every block of rows would read them from memory.
  bool streamed = bytes > 4 * cache;
  if (streamed) parts = std::max(parts, std::min(planes, bytes / cache));
  return std::min(ceil_div(planes, parts), most);
}

LaunchList conv_panels(const Target& t, const ConvProduct& p) {
  bool glsl = t.language->subgroups;
  int64_t size = glsl ? 4 : 16, lanes = glsl ? 8 : 1, vectors = p.columns > size * lanes ? 2 : 1,
          wide = vectors * size * lanes;
  int64_t panels = ceil_div(p.columns, wide), panel_elements = p.groups * panels * p.depth() * wide;
  Image image = image_of(p);
  Rows rows = rows_of(p, image, glsl ? 16 : 14, !glsl);
  Element e = element_of(p.dtype);
  LaunchList list;
  int scratch = p.bias ? 4 : 3, from = 0;
  auto add_scratch = [&](int64_t elements) {
    list.scratch_bytes.push_back(static_cast<uint64_t>(elements) * 4);
    return scratch++;
  };
  if (image.padded) {
    int64_t slack = rows.segment ? rows.count * p.x.row_step : 0;  // read beyond the last line, never stored
    from = add_scratch(image.elements + slack);
    list.launches.push_back(pad(t, p, image, from));
  }
  int packed = add_scratch(panel_elements);
  Kernel packing = portable("conv_pack", {{"T", e}});
  describe_product(p, packing, packing.as_number());
  packing.set("INSIDE(k)", "true");
  packing.set("K_OF(n)", "(n)");
  list.launches.push_back(pack_panels(t, p, std::move(packing), panels, p.depth(), wide, packed));

  int64_t groups = rows.blocks * panels * p.groups;
  int64_t part = part_of(t, {p.k_planes, p.y.taps, p.x.taps}, groups, p.depth() * wide * 4),
          parts = ceil_div(p.k_planes, part);
  Kernel k = portable("conv_panels", {{"T", e}, {"A", Element::f32}, {"Y", parts > 1 ? Element::f32 : e}});
  describe_product(p, k, k.as_number());
  int64_t plane = image.plane;
  const std::pair<const char*, int64_t> numbers[] = {{"ROWS", rows.count},
                                                     {"VECTORS", vectors},
                                                     {"SIZE", size},
                                                     {"WIDE", wide},
                                                     {"BLOCKS", rows.blocks},
                                                     {"PANELS", panels},
                                                     {"PARTS", parts},
                                                     {"PART", part},
                                                     {"K1", p.k_planes},
                                                     {"K2", p.y.taps},
                                                     {"K3", p.x.taps},
                                                     {"S1", p.k_plane * plane},
                                                     {"S2", p.y.k_step * image.width},
                                                     {"S3", p.x.k_step}};
  for (auto& [name, value] : numbers) k.set(name, value);
  if (rows.segment) {
    std::string blocks = k.number(rows.per_segment), length = k.number(rows.segment);
    k.set("ROW(r)", fmt::format("(block / {0} * {1} + block % {0} * {2} + (r))", blocks, length, rows.count));
    k.set("VALID(r)", fmt::format("block % {} * {} + (r) < {}", blocks, rows.count, length));
  } else {
    k.set("ROW(r)", fmt::format("(block * {} + (r))", rows.count));
    k.set("VALID(r)", fmt::format("ROW(r) < {}", k.number(p.rows())));
  }
  // The rows of a segment are neighbours in y unless its positions have a step.
  k.set("ADJACENT", !glsl && rows.segment && (p.y_step == 0 || parts > 1) ? "true" : "false");
  // One address per row: divisions by run-time numbers are expensive compared with short sums.
  Write n = rows.segment || p.depth() >= 512 ? k.as_number() : as_literal;
  k.set("A_AT(m)", image_address(p, n, p.row_plane, p.group_plane, plane, image.width, image.base));
  std::string last_row = n(p.rows() - 1);
  if (glsl)
    glsl_words(k, rows, last_row);
  else
    vector_words(*t.language, k, rows, last_row);
  k.elements = static_cast<uint64_t>(
      std::max({image.elements + 64 * p.x.row_step, panel_elements, p.y_reach(), p.y_elements * parts}));
  launch_conv(t, list, p, std::move(k), parts, {from, packed}, groups * parts);
  return list;
}

}  // namespace tutti::codegen
