// Convolutions with few columns, or short sums, on CPUs: vectorizes along image lines instead of columns, which would
// fill few lanes, without a padded image or a packed operand in memory (conv_strips.k, conv_taps.k).
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "kernels/codegen/conv.h"

namespace tutti::codegen {
namespace {

constexpr int64_t lanes = 16;
/// Maximum elements of a group's arrays, so that they fit into a core's L1 and L2 caches.
constexpr int64_t most_private = 12288;

/// Strips of whole lines of positions (`rows` of the axes), and the copy of the pixels that a strip's windows read.
struct Strips {
  ConvAxis y, x;
  int64_t lines = 0, count = 0;           ///< lines per strip; number of strips
  int64_t phase = 0, line = 0, high = 0;  ///< of the copy: pixels per phase and per line; number of lines
  bool flat = false;                      ///< one loop over all lines

  Strips(const ConvAxis& y_axis, const ConvAxis& x_axis, int64_t n) : y(y_axis), x(x_axis), lines(n) {
    count = ceil_div(y.rows, lines);
    phase = x.rows + (x.taps - 1) * x.k_step / x.row_step;
    line = x.row_step * phase;
    high = (lines - 1) * y.row_step + (y.taps - 1) * y.k_step + 1;
    flat = y.row_step == 1 && x.rows < lanes && lines > 1;
  }
  int64_t tile() const { return high * line; }
  /// Iterations of the innermost loop, including gaps: whole vectors.
  int64_t inner() const { return align_up(flat ? (lines - 1) * line + x.rows : x.rows, lanes); }
  int64_t outer() const { return flat ? 1 : lines; }

  void describe(Kernel& k) const {
    k.set("STRIPS", count);
    k.set("LINES", lines);
    k.set("HIGH", high);
    k.set("LINE", line);
    k.set("PHASES", x.row_step);
    k.set("OUTER", outer());
    k.set("OFF_Y", y.offset);
    k.set("H", y.size);
    k.set("W", x.size);
    for (int64_t p = 0; p < x.row_step; ++p) {
      Pixels pixels = pixels_of(x, x.row_step, p, phase);
      k.set(fmt::format("COUNT_{}", p), pixels.count);
      k.set(fmt::format("FROM_{}", p), pixels.from);
      k.set(fmt::format("TO_{}", p), p * phase + pixels.to);
    }
    for (int64_t t = 0; t < y.taps * x.taps; ++t) {
      int64_t across = t % x.taps * x.k_step;
      k.set(fmt::format("OFF_{}", t), t / x.taps * y.k_step * line + across % x.row_step * phase + across / x.row_step);
    }
    k.set("TAPS", y.taps * x.taps);
  }
};

void set_planes(Kernel& k, const ConvProduct& p) {
  k.set("ROW_PLANE", p.row_plane);
  k.set("K_PLANE", p.k_plane);
  k.set("GROUP_PLANE", p.group_plane);
}

ConvAxis turned(const ConvAxis& a) { return {a.size, a.taps, a.k_step, a.rows, a.row_step, a.offset, a.step}; }

}  // namespace

Pixels pixels_of(const ConvAxis& a, int64_t every, int64_t remainder, int64_t length) {
  // Pixel n is at n * step - offset, and position i * every + remainder is shifted by `shift`; one of the two steps is
  // 1.
  int64_t shift = a.offset + remainder, from, to;
  if (a.step > 1) {
    from = ceil_div(std::max<int64_t>(shift, 0), a.step);
    to = from * a.step - shift;
  } else {
    to = ceil_div(std::max<int64_t>(-shift, 0), every);
    from = to * every + shift;
  }
  int64_t here = ceil_div(std::max<int64_t>(a.size - from, 0), every),
          there = ceil_div(std::max<int64_t>(length - to, 0), a.step);
  return {std::min(here, there), from, to};
}

std::optional<LaunchList> conv_strips(const Target& t, const ConvProduct& p) {
  bool few = p.columns <= 4, shallow = p.k_planes == 1 && p.taps() <= 32 && p.x.row_step == 1;
  if (!(few || shallow) || p.taps() > 64) return {};
  int64_t lines = p.y.rows;
  auto elements = [&](const Strips& s) { return s.tile() + lanes + p.columns * s.outer() * s.inner(); };
  auto strips = [&] { return Strips(p.y, p.x, lines); };
  while (lines > 1 &&
         (elements(strips()) > most_private || p.row_planes * p.groups * strips().count < 4 * int64_t{t.compute_units}))
    lines = ceil_div(lines, 2);
  Strips s = strips();
  if (elements(s) > most_private) return {};
  Element e = element_of(p.dtype);
  Kernel k = portable("conv_strips", {{"T", e}});
  describe_product(p, k, as_literal);
  s.describe(k);
  set_planes(k, p);
  int64_t groups = p.row_planes * p.groups * s.count, sum_line = s.flat ? s.line : s.inner();
  const std::pair<const char*, int64_t> numbers[] = {{"ROW_PLANES", p.row_planes},
                                                     {"K1", p.k_planes},
                                                     {"RX", p.x.rows},
                                                     {"RY", p.y.rows},
                                                     {"ROW_Y", p.y.row_step},
                                                     {"ROW_X", p.x.row_step},
                                                     {"STEP_Y", p.y.step},
                                                     {"STEP_X", p.x.step},
                                                     {"INNER", s.inner()},
                                                     {"SUM_LINE", sum_line},
                                                     {"SUMS", s.outer() * s.inner()},
                                                     {"Y_LINE", p.y_step ? p.y_line : p.x.rows},
                                                     {"Y_STEP", p.y_step ? p.y_step : 1}};
  for (auto& [name, value] : numbers) k.set(name, value);
  k.elements = static_cast<uint64_t>(std::max({p.image_elements(), p.b_elements, p.y_reach()}));
  LaunchList list;
  launch_conv(t, list, p, std::move(k), 1, {0, 1}, groups);
  return list;
}

std::optional<LaunchList> conv_taps(const Target& t, const ConvProduct& p) {
  bool few = p.columns <= 4 || p.row_planes == 1;
  if (!few || p.positions() > 28) return {};
  ConvAxis y = turned(p.y), x = turned(p.x);
  auto sums = [&](const Strips& s) { return s.inner() * s.outer(); };
  auto elements = [&](const Strips& s) { return s.tile() + sums(s) + p.columns * p.positions() * lanes; };
  int64_t lines = y.rows;
  while (lines > 1 && elements(Strips(y, x, lines)) > most_private) do
      --lines;
    while (y.rows % lines != 0);
  Strips s(y, x, lines);
  if (elements(s) > most_private) return {};
  int64_t planes = p.row_planes * p.groups;
  int64_t part = ceil_div(p.k_planes, std::min(p.k_planes, ceil_div(4 * int64_t{t.compute_units}, planes))),
          parts = ceil_div(p.k_planes, part);
  Element e = element_of(p.dtype);
  Kernel k = portable("conv_taps", {{"T", e}, {"Y", parts > 1 ? Element::f32 : e}});
  describe_product(p, k, as_literal);
  s.describe(k);
  set_planes(k, p);
  int64_t inner = s.inner();
  const std::pair<const char*, int64_t> numbers[] = {{"ROW_PLANES", p.row_planes},
                                                     {"PARTS", parts},
                                                     {"PART", part},
                                                     {"K1", p.k_planes},
                                                     {"KX", p.x.taps},
                                                     {"KY", p.y.taps},
                                                     {"K_Y", p.y.k_step},
                                                     {"K_X", p.x.k_step},
                                                     {"INNER", inner},
                                                     {"SUM_LINE", s.flat ? s.line : inner},
                                                     {"COTS", sums(s)}};
  for (auto& [name, value] : numbers) k.set(name, value);
  k.set("VEC", "float16");
  k.set("LANES", "int16");
  k.set("LOAD(from)", "vload16(0, from)");
  k.set("STORE(v,to)", "vstore16(v, 0, to)");
  k.set("KEEP(v,lanes)", s.outer() * inner == p.taps() ? "(v)" : t.language->masked16);
  k.elements = static_cast<uint64_t>(std::max({p.image_elements(), p.b_elements, p.y_elements * parts}));
  LaunchList list;
  launch_conv(t, list, p, std::move(k), parts, {0, 1}, planes * parts);
  return list;
}

}  // namespace tutti::codegen
