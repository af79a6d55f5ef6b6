// Convolutions for CPUs that read texel buffers faster than storage buffers: an image stored in groups of four elements
// along k, the other operand packed into panels, a register tile per work-item (conv_texels.k).
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "kernels/codegen/conv.h"

namespace tutti::codegen {
namespace {

constexpr int64_t lanes = 8;

/// The four elements of a texel along k: of four planes, or of four taps along x.
struct Quads {
  bool planes = true;
  int64_t k1 = 0, k3 = 0;          ///< rounds along planes and along x, four k each
  int64_t all = 0, per_outer = 0;  ///< number of quad planes; number of consecutive ones along k, if any
  int64_t row_plane = 0, k_plane = 0, group_plane = 0;
  int64_t height = 0, width = 0;

  int64_t elements() const { return all * height * width * 4; }
};

Quads quads_of(const ConvProduct& p) {
  Quads q;
  q.height = p.y.span();
  q.width = p.x.span();
  int64_t four_planes = align_up(p.k_planes, 4) * p.x.taps, four_taps = p.k_planes * align_up(p.x.taps, 4);
  // Quads along x store each element four times, but b is packed in its original order.
  bool little = p.x.taps % 4 == 0 && p.planes * q.height * q.width * 4 <= p.b_elements;
  q.planes = four_planes <= four_taps * 6 / 5 && !little;
  if (!q.planes) {
    q.k1 = p.k_planes;
    q.k3 = ceil_div(p.x.taps, 4);
    q.all = p.planes;
    q.row_plane = p.row_plane;
    q.k_plane = p.k_plane;
    q.group_plane = p.group_plane;
    return q;
  }
  q.k1 = ceil_div(p.k_planes, 4);
  q.k3 = p.x.taps;
  if (p.k_plane == 1) {  // quads of four channels of one sample
    q.per_outer = q.k1;
    q.all = p.planes / p.k_planes * q.k1;
    q.row_plane = p.groups * q.k1;
    q.k_plane = 1;
    q.group_plane = q.k1;
  } else {  // quads of one channel of four samples
    q.all = q.k1 * p.k_plane;
    q.row_plane = p.row_plane;
    q.k_plane = p.k_plane;
    q.group_plane = p.group_plane;
  }
  return q;
}

Launch image(const Target& t, const ConvProduct& p, const Quads& q, int to) {
  Kernel k = portable("conv_quads", {{"T", element_of(p.dtype)}});
  int64_t total = q.elements() / 4;
  const std::pair<const char*, int64_t> numbers[] = {{"TOTAL", total},      {"H", p.y.size},
                                                     {"W", p.x.size},       {"HP", q.height},
                                                     {"WP", q.width},       {"MIN_Y", p.y.offset},
                                                     {"MIN_X", p.x.offset}, {"STEP_Y", p.y.step},
                                                     {"STEP_X", p.x.step},  {"SHIFT", q.planes ? 0 : p.x.k_step},
                                                     {"COUNT", 4}};
  for (auto& [name, value] : numbers) k.set(name, value < 0 ? fmt::format("({})", value) : std::to_string(value));
  if (!q.planes) {
    k.set("SOURCE(plane,c)", "(plane)");
    k.set("INSIDE(plane,c)", "true");
  } else if (q.per_outer) {
    k.set("SOURCE(plane,c)", fmt::format("((plane) / {0} * {1} + (plane) % {0} * 4 + (c))", q.per_outer, p.k_planes));
    k.set("INSIDE(plane,c)", fmt::format("(plane) % {} * 4 + (c) < {}", q.per_outer, p.k_planes));
  } else {
    k.set("SOURCE(plane,c)", fmt::format("((plane) % {0} + ((plane) / {0} * 4 + (c)) * {0})", p.k_plane));
    k.set("INSIDE(plane,c)", fmt::format("(plane) / {} * 4 + (c) < {}", p.k_plane, p.k_planes));
  }
  k.read_as_texels(t, "x", p.image_elements());
  k.elements = static_cast<uint64_t>(std::max(q.elements(), p.image_elements()));
  return dispatch_items(t, std::move(k), total, {0, to});
}

/// The kernel that packs b in the order of the quads.
Kernel packing(const ConvProduct& p, const Quads& q) {
  Kernel k = portable("conv_pack", {{"T", element_of(p.dtype)}});
  describe_product(p, k, as_literal);
  std::string c = "IDX(k) % 4", rest = "IDX(k) / 4", l = fmt::format("({} % {})", rest, q.k3),
              j = fmt::format("({} / {} % {})", rest, q.k3, p.y.taps),
              i = fmt::format("({} / {})", rest, q.k3 * p.y.taps);
  std::string plane = q.planes ? fmt::format("({} * 4 + {})", i, c) : i,
              x = q.planes ? l : fmt::format("({} * 4 + {})", l, c);
  k.set("B_AT(g,k)", fmt::format("((g) * {} + {} * {} + {})", p.b_group, plane, p.b_plane,
                                 tap_in_b(p, as_literal, fmt::format("{} * {} + {}", j, p.x.taps, x))));
  k.set("INSIDE(k)", fmt::format("{} < {} && {} < {}", plane, p.k_planes, x, p.x.taps));
  // If quads combine planes, adjacent elements of b belong to the same component of consecutive quads.
  k.set("K_OF(n)", q.planes ? fmt::format("((n) % {0} * 4 + (n) / {0})", q.k1 * p.y.taps * q.k3) : "(n)");
  return k;
}

}  // namespace

LaunchList conv_texels(const Target& t, const ConvProduct& p) {
  constexpr int64_t rows = 4, vectors = 2;  // rows in quads, columns in vectors
  Quads q = quads_of(p);
  int64_t lanes_n = 8, depth = q.k1 * p.y.taps * q.k3 * 4;
  auto area = [&](int64_t n) {
    int64_t high = rows * 4 * (lanes / n), wide = vectors * 4 * n;
    return align_up(p.rows(), high) * align_up(p.columns, wide);
  };
  for (int64_t n : {4, 2, 1})
    if (area(n) < area(lanes_n)) lanes_n = n;
  int64_t high = rows * 4 * (lanes / lanes_n), wide = vectors * 4 * lanes_n;
  int64_t row_blocks = ceil_div(p.rows(), high), panels = ceil_div(p.columns, wide),
          panel_elements = p.groups * panels * depth * wide;
  // Both are written to storage buffers and read as texels.
  if (static_cast<uint64_t>(std::max(panel_elements, q.elements())) >
      std::min(t.max_buffer_bytes / 4, t.max_texels * 4))
    return conv_panels(t, p);

  LaunchList list;
  int quads = p.bias ? 4 : 3, packed = quads + 1;
  list.scratch_bytes = {static_cast<uint64_t>(q.elements()) * 4, static_cast<uint64_t>(panel_elements) * 4};
  list.launches.push_back(image(t, p, q, quads));
  list.launches.push_back(pack_panels(t, p, packing(p, q), panels, depth, wide, packed));
  int64_t groups = row_blocks * panels * p.groups;
  int64_t part = part_of(t, {q.k1, p.y.taps, q.k3}, groups, depth * wide * 4), parts = ceil_div(q.k1, part);
  Element e = element_of(p.dtype);
  Kernel k = portable("conv_texels", {{"T", e}, {"Y", parts > 1 ? Element::f32 : e}});
  describe_product(p, k, as_literal);
  int64_t plane = q.height * q.width;
  const std::pair<const char*, int64_t> numbers[] = {{"M", p.rows()},
                                                     {"BLOCKS", row_blocks},
                                                     {"PANELS", panels},
                                                     {"PARTS", parts},
                                                     {"PART", part},
                                                     {"K1", q.k1},
                                                     {"K2", p.y.taps},
                                                     {"K3", q.k3},
                                                     // Taps beyond these are outside of the window.
                                                     {"TAPS", q.planes ? q.k3 * 4 : p.x.taps},
                                                     {"S1", q.k_plane * plane},
                                                     {"S2", p.y.k_step * q.width},
                                                     {"S3", p.x.k_step * (q.planes ? 1 : 4)},
                                                     {"LANES_N", lanes_n},
                                                     {"HIGH", high},
                                                     {"WIDE", wide},
                                                     {"QUADS", rows},
                                                     {"VECTORS", vectors}};
  for (auto& [name, value] : numbers) k.set(name, value);
  k.set("A_AT(m)", image_address(p, as_literal, q.row_plane, q.group_plane, plane, q.width, 0));
  bool whole = parts == 1;
  bool direct = p.y_step == 0 && (!whole || e == Element::f32) && p.positions() % 4 == 0 && p.y_column % 4 == 0 &&
                p.y_plane % 4 == 0 && p.y_group % 4 == 0 && p.y_elements % 4 == 0;
  std::string sum = whole && p.bias ? fmt::format("((v) + bias((o) + {}))", p.bias_first) : "(v)";
  if (whole && p.relu) sum = fmt::format("mix({0}, vec4(0.0f), lessThan({0}, vec4(0.0f)))", sum);
  k.set("DIRECT", direct ? "true" : "false");
  k.set("STORE(at,v,o)", direct ? fmt::format("y4_set(at, {})", sum) : "{}");
  k.read_as_texels(t, "a", q.elements());
  k.read_as_texels(t, "b", panel_elements);
  k.elements = static_cast<uint64_t>(std::max({panel_elements, q.elements(), p.y_reach()}));
  launch_conv(t, list, p, std::move(k), parts, {quads, packed}, groups * parts);
  return list;
}

}  // namespace tutti::codegen
