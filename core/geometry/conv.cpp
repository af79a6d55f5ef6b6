#include "core/geometry/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/status.h"

namespace tutti {

ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Attrs& a) {
  if (x.size() != 4 || w.size() != 4)
    throw invalid(
        fmt::format("images {} and weights {}: both need 4 dimensions, [N, C, H, W] and [O, C/groups, ky, kx]",
                    to_string(x), to_string(w)));
  int64_t groups = a.i("groups");
  if (groups < 1 || x[1] % groups || w[0] % groups)
    throw invalid(fmt::format("groups {} must divide the {} channels of images {} and the {} filters of weights {}",
                              groups, x[1], to_string(x), w[0], to_string(w)));
  if (x[1] / groups != w[1])
    throw invalid(fmt::format("images {} have {} channels in {} group(s), so weights {} need {} channels, not {}",
                              to_string(x), x[1], groups, to_string(w), x[1] / groups, w[1]));
  num_elements(x);
  num_elements(w);
  return {x[0], x[1], w[0], groups, window_axis(a, 0, x[2], w[2]), window_axis(a, 1, x[3], w[3])};
}

ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Shape& d, const Attrs& a) {
  ConvGeometry g = conv_geometry(x, w, a);
  if (g.result() != d)
    throw invalid(fmt::format("images {} and weights {} give an output {}, but its gradient is {}", to_string(x),
                              to_string(w), to_string(g.result()), to_string(d)));
  return g;
}

Shape channels_last(const Shape& first) {
  if (first.size() != 4) throw invalid(fmt::format("images {} need 4 dimensions, [N, C, H, W]", to_string(first)));
  return {first[0], first[2], first[3], first[1]};
}

Shape channels_first(const Shape& last) {
  if (last.size() != 4)
    throw invalid(
        fmt::format("channels-last images or weights {} need 4 dimensions, [N, H, W, C] or [O, ky, kx, C/groups]",
                    to_string(last)));
  return {last[0], last[3], last[1], last[2]};
}

std::vector<int64_t> positions_outside(const ConvGeometry& g, bool images, int64_t ky, int64_t kx) {
  // Per axis: the result positions that read the image, or the pixels that are read.
  auto inside = [&](const WindowAxis& axis, int64_t tap) {
    auto [first, last] = axis.inside(tap);
    std::vector<bool> on(static_cast<size_t>(images ? axis.size : axis.count));
    for (int64_t o = first; o < last; ++o) on[static_cast<size_t>(images ? axis.at(o, tap) : o)] = true;
    return on;
  };
  std::vector<bool> rows = inside(g.h, ky), columns = inside(g.w, kx);
  std::vector<int64_t> positions, all(columns.size()), some;  // all: for a row that is outside; some: for other rows
  std::iota(all.begin(), all.end(), int64_t{0});
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](int64_t x) { return !columns[static_cast<size_t>(x)]; });
  for (size_t y = 0; y < rows.size(); ++y)
    for (int64_t x : rows[y] ? some : all) positions.push_back(static_cast<int64_t>(y * columns.size()) + x);
  return positions;
}

bool all_inside(const ConvGeometry& g, bool images) {
  for (int64_t ky = 0; ky < g.h.kernel; ++ky)
    for (int64_t kx = 0; kx < g.w.kernel; ++kx)
      if (!positions_outside(g, images, ky, kx).empty()) return false;
  return true;
}

}  // namespace tutti
