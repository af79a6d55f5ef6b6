// Formulates convolutions and their gradients as products and chooses kernels.
#include "kernels/codegen/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/rounding.h"
#include "core/base/status.h"
#include "kernels/codegen/matmul.h"

namespace tutti::codegen {
namespace {

/// Rows are window positions in x, k the window's elements.
ConvAxis forward_axis(const WindowAxis& w) { return {w.size, w.count, w.stride, w.kernel, w.dilation, -w.padding, 1}; }
/// Rows are positions of x, the image is the cotangent: position x uses result (x + padding - tap * dilation) / stride.
/// Taps are counted from the last one, so that addresses increase.
ConvAxis image_gradient_axis(const WindowAxis& w) {
  return {w.count, w.size, 1, w.kernel, w.dilation, w.padding - (w.kernel - 1) * w.dilation, w.stride};
}
/// Rows are taps, k are results.
ConvAxis weight_gradient_axis(const WindowAxis& w) {
  return {w.size, w.kernel, w.dilation, w.count, w.stride, -w.padding, 1};
}

/// Kernel with images in shared memory, for GPUs; or one work-item per result.
LaunchList conv_items(const Target& t, const ConvProduct& p) {
  LaunchList list;
  bool tiled = !t.cpu_like && t.max_local >= 256 && t.local_bytes >= 16384 && p.columns >= 16;
  int64_t tiles_m = ceil_div(p.rows(), 64), tiles_n = ceil_div(p.columns, 64), depth = p.depth();
  int64_t groups = tiled ? tiles_m * tiles_n * p.groups : ceil_div(p.y_elements, 64);
  int64_t most = longest_part(t, tiled ? tile_rounds : 16, 16);
  int64_t want = std::min(ceil_div(4 * int64_t{t.compute_units}, groups), depth / 256);
  int64_t parts = std::max({int64_t{1}, want, ceil_div(depth, most)});
  int64_t length = align_up(ceil_div(depth, parts), 16);
  parts = ceil_div(depth, length);
  Element e = element_of(p.dtype);
  Kernel k = portable(tiled ? "conv_tile" : "conv_dot", {{"T", e}, {"Y", parts > 1 ? Element::f32 : e}});
  describe_product(p, k, as_literal);
  k.set("M", p.rows());
  k.set("K", depth);
  if (tiled) {
    k.set("TILES_M", tiles_m);
    k.set("TILES_N", tiles_n);
  }
  k.set("PARTS", parts);
  k.set("PART", length);
  const std::pair<const char*, int64_t> numbers[] = {{"RX", p.x.rows},
                                                     {"RY", p.y.rows},
                                                     {"ROW_Y", p.y.row_step},
                                                     {"ROW_X", p.x.row_step},
                                                     {"KX", p.x.taps},
                                                     {"KY", p.y.taps},
                                                     {"K_Y", p.y.k_step},
                                                     {"K_X", p.x.k_step},
                                                     {"OFF_Y", p.y.offset},
                                                     {"OFF_X", p.x.offset},
                                                     {"STEP_Y", p.y.step},
                                                     {"STEP_X", p.x.step},
                                                     {"H", p.y.size},
                                                     {"W", p.x.size},
                                                     {"ROW_PLANE", p.row_plane},
                                                     {"K_PLANE", p.k_plane},
                                                     {"GROUP_PLANE", p.group_plane}};
  for (auto& [name, value] : numbers) k.set(name, value);
  k.elements = static_cast<uint64_t>(std::max({p.image_elements(), p.b_elements, p.y_reach(), p.y_elements * parts}));
  launch_conv(t, list, p, std::move(k), parts, {0, 1}, tiled ? groups * parts : ceil_div(p.y_elements * parts, 64));
  return list;
}

/// Index of position m in a strided plane of y.
std::string position_in_y(const ConvProduct& p, const Write& n, const std::string& m) {
  std::string line = n(p.x.rows);
  return fmt::format("({0}) / {1} % {2} * {3} + ({0}) % {1} * {4} + {5}", m, line, n(p.y.rows), n(p.y_line),
                     n(p.y_step), n(p.y_first));
}

}  // namespace

std::string y_of_result(const ConvProduct& p, const std::string& e) {
  return fmt::format("(({}) / {} * {} + {})", e, p.positions(), p.y_column, position_in_y(p, as_literal, e));
}

LaunchList conv_product(const Target& t, const ConvProduct& p) {
  if (!is_float(p.dtype))
    throw Error(Code::declined, fmt::format("convolution of dtype {} is not supported", name(p.dtype)));
  if (p.y_elements == 0) return {};
  if (p.depth() == 0) {
    if (p.bias || p.relu) throw Error(Code::declined, "a convolution without elements to sum is not supported");
    LaunchList list = fill(t, p.dtype, p.y_elements, 0);
    list.launches[0].buffers = {2};  // the result, after the two operands
    return list;
  }
  constexpr int64_t most = 0x7fffff00;
  if (std::max({p.rows(), p.depth(), p.y.span(), p.x.span()}) > most)
    throw Error(Code::declined, "a convolution with more than 2^31 positions or summands is not supported");
  bool vectors = t.language->float16() || (t.language->subgroups && t.subgroup == 8);
  if (!t.cpu_like || !vectors) return conv_items(t, p);
  if (t.language->float16())
    if (std::optional<LaunchList> list = p.of_weights ? conv_taps(t, p) : conv_strips(t, p)) return *std::move(list);
  return t.max_texels > 0 ? conv_texels(t, p) : conv_panels(t, p);
}

std::string tap_in_b(const ConvProduct& p, const Write& n, const std::string& tap) {
  if (p.b_tap_x == 0) return fmt::format("({})", tap);
  if (p.b_tap_y == p.x.taps * p.b_tap_x) return fmt::format("({} - ({}) * {})", n(p.b_tap), tap, n(p.b_tap_x));
  return fmt::format("({0} - ({1}) / {2} * {3} - ({1}) % {2} * {4})", n(p.b_tap), tap, n(p.x.taps), n(p.b_tap_y),
                     n(p.b_tap_x));
}

void describe_product(const ConvProduct& p, Kernel& k, const Write& n) {
  k.set("N", p.columns);
  for (const Param& param : k.params)
    if (param.name == "b") {
      std::string taps = n(p.taps());
      k.set("B_AT(g,k)", fmt::format("((g) * {} + IDX(k) / {} * {} + {})", n(p.b_group), taps, n(p.b_plane),
                                     tap_in_b(p, n, fmt::format("IDX(k) % {}", taps))));
      k.set("COLUMN", p.b_column);
    }
}

void launch_conv(const Target& t, LaunchList& list, const ConvProduct& p, Kernel k, int64_t parts,
                 std::vector<int> first, int64_t groups) {
  int64_t positions = p.positions(), filters = p.columns * p.groups;
  Write n = k.as_number();
  k.set("TOTAL", p.y_elements);
  k.set("GROUPS", p.groups);
  auto plain = [&](int64_t plane, int64_t group) {
    return fmt::format("((m) / {0} * {1} + (m) % {0} + IDX(g) * {2})", n(positions), n(plane), n(group));
  };
  if (p.y_step == 0) {
    k.set("Y_AT(m)", plain(p.y_plane, p.y_group));
    k.set("Y_COLUMN", p.y_column);
  } else if (parts == 1) {
    k.set("Y_AT(m)", fmt::format("((m) / {} * {} + {} + IDX(g) * {})", n(positions), n(p.y_plane),
                                 position_in_y(p, n, "m"), n(p.y_group)));
    k.set("Y_COLUMN", p.y_column);
  } else {  // the parts are contiguous
    k.set("Y_AT(m)", plain(positions * filters, positions * p.columns));
    k.set("Y_COLUMN", positions);
  }
  Results r{p.dtype, p.y_elements, parts, p.bias, p.relu, "v,o", fmt::format("(o) + {}", n(p.bias_first))};
  r.column_of_e = fmt::format("(e) / {} % {} + {}", positions, filters, p.bias_first);
  if (p.y_step) r.y_of_e = y_of_result(p, "e");
  launch_results(t, list, r, std::move(k), std::move(first), groups);
}

namespace {

/// Whether windows are one pixel and each is one.
bool of_points(const Conv& c) {
  auto point = [](const WindowAxis& a) { return a.kernel == 1 && a.stride == 1 && a.padding == 0; };
  return c.groups == 1 && point(c.h) && point(c.w);
}

/// A convolution with windows of one pixel, or its gradient of the images, as a product per image on a CPU: `filters`
/// and `channels` are those of the result and of the image, weights are stored as [filters, channels] or, if `turned`,
/// [channels, filters]. Its results are stored as whole vectors, but it packs the images: not where these are larger.
std::optional<LaunchList> conv_points(const Target& t, const Conv& c, int64_t filters, int64_t channels, bool turned) {
  const int64_t positions = c.h.size * c.w.size;
  constexpr int64_t vectors = 32;  // of a panel of matmul_panels
  const bool whole = positions % vectors == 0 && positions > 0 && c.batch > 0 && channels > 0;
  if (!t.cpu_like || !t.language->float16() || t.exact || !of_points(c) || !whole || c.bias || c.relu ||
      channels > filters)
    return {};
  Matmul p{.dtype = c.dtype, .m = filters, .n = positions, .k = channels, .ta = turned};
  p.batch = {c.batch};
  p.a_batch = {0};
  p.b_batch = {channels * positions};
  LaunchList list = matmul(t, p);
  for (Launch& l : list.launches)
    for (int& b : l.buffers) b = b < 2 ? 1 - b : b;  // images come first
  return list;
}

}  // namespace

LaunchList conv(const Target& t, const Conv& c) {
  if (std::optional<LaunchList> list = conv_points(t, c, c.filters, c.channels, false)) return *std::move(list);
  int64_t in = c.channels / c.groups, out = c.filters / c.groups;
  ConvProduct p{c.dtype, forward_axis(c.h), forward_axis(c.w), c.groups, out, c.batch, in, c.batch * c.channels};
  int64_t positions = p.positions(), taps = p.taps();
  p.row_plane = c.channels;
  p.k_plane = 1;
  p.group_plane = in;
  p.b_group = out * in * taps;
  p.b_plane = taps;
  p.b_column = in * taps;
  p.b_elements = c.filters * in * taps;
  p.y_group = out * positions;
  p.y_plane = c.filters * positions;
  p.y_column = positions;
  p.y_elements = c.batch * c.filters * positions;
  p.bias = c.bias;
  p.relu = c.relu;
  return conv_product(t, p);
}

LaunchList conv_dx(const Target& t, const Conv& c) {
  if (std::optional<LaunchList> list = conv_points(t, c, c.channels, c.filters, true)) return *std::move(list);
  int64_t in = c.channels / c.groups, out = c.filters / c.groups;
  ConvProduct p{c.dtype, image_gradient_axis(c.h), image_gradient_axis(c.w), c.groups, in, c.batch,
                out,     c.batch * c.filters};
  int64_t positions = p.positions(), taps = p.taps();
  p.row_plane = c.filters;
  p.k_plane = 1;
  p.group_plane = out;
  p.b_group = out * in * taps;
  p.b_plane = in * taps;
  p.b_column = taps;
  p.b_elements = c.filters * in * taps;
  p.y_group = in * positions;
  p.y_plane = c.channels * positions;
  p.y_column = positions;
  p.y_elements = c.batch * c.channels * positions;
  p.b_tap = taps - 1;
  p.b_tap_y = c.w.kernel;
  p.b_tap_x = 1;
  if (std::optional<LaunchList> list = conv_phases(t, c, p)) return *std::move(list);
  return conv_product(t, p);
}

LaunchList conv_dw(const Target& t, const Conv& c) {
  int64_t in = c.channels / c.groups, out = c.filters / c.groups;
  ConvProduct p{c.dtype, weight_gradient_axis(c.h), weight_gradient_axis(c.w), c.groups, out, in,
                c.batch, c.batch * c.channels};
  int64_t positions = p.positions(), results = p.taps();
  p.of_weights = true;
  p.row_plane = 1;
  p.k_plane = c.channels;
  p.group_plane = in;
  p.b_group = out * results;
  p.b_plane = c.filters * results;
  p.b_column = results;
  p.b_elements = c.batch * c.filters * results;
  p.y_group = out * in * positions;
  p.y_plane = positions;
  p.y_column = in * positions;
  p.y_elements = c.filters * in * positions;
  // A CPU packs the cotangents: rather the images, if these have fewer channels.
  const bool packs = t.cpu_like && t.language->float16() && !t.exact;
  if (!packs || !of_points(c) || c.channels >= c.filters) return conv_product(t, p);
  std::swap(p.columns, p.row_planes);
  std::swap(p.y_plane, p.y_column);
  p.planes = c.batch * c.filters;
  p.k_plane = c.filters;
  p.b_plane = c.channels * results;
  p.b_elements = c.batch * c.channels * results;
  LaunchList list = conv_product(t, p);
  for (Launch& l : list.launches)
    for (int& b : l.buffers) b = b < 2 ? 1 - b : b;
  return list;
}

}  // namespace tutti::codegen
