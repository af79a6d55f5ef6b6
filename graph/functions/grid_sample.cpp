#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/functions/lines.h"
#include "graph/in_f32.h"
#include "graph/ops/cast.h"
#include "graph/ops/clamp.h"
#include "graph/ops/floor.h"
#include "graph/ops/gather.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/transpose.h"

namespace tutti {
namespace {

/// Sampling positions along one axis: the pixel before the position, and the distance to it.
struct Place {
  int64_t size;
  Value pixel, rest;

  /// The pixel, or the next one (`next`): its clamped index, whether it is inside, and its weight.
  Value index(bool next) const {
    return cast(clamp(next ? pixel + 1.0 : pixel, 0, static_cast<double>(size - 1)), DType::i32);
  }
  Value inside(bool next) const {
    Value at = next ? pixel + 1.0 : pixel;
    return logical_and(at >= 0.0, at < static_cast<double>(size));
  }
  Value weight(bool next) const { return next ? rest : 1.0 - rest; }
};

Place place_of(Value at, int64_t size, const GridSampleOptions& o) {
  auto n = static_cast<double>(size);
  at = squeeze(at, {-1});
  at = o.align_corners ? (at + 1.0) * ((n - 1) / 2) : (at + 1.0) * (n / 2) - 0.5;
  if (o.padding_mode == "border") at = clamp(at, 0, n - 1);
  if (o.mode == "nearest") return {size, round(at), {}};
  Value pixel = floor(at);
  return {size, pixel, at - pixel};
}

}  // namespace

Value grid_sample(Value x, Value grid, const GridSampleOptions& o) {
  const Shape s = x.shape(), positions = grid.shape();
  if (s.size() != 4 || positions.size() != 4 || positions[3] != 2 || positions[0] != s[0] || s[2] < 1 || s[3] < 1)
    throw invalid(fmt::format("grid_sample: invalid shapes x {} and grid {}", to_string(s), to_string(positions)),
                  "x must be [N, C, H, W] with H and W at least 1, and the grid [N, OH, OW, 2]");
  if ((o.mode != "bilinear" && o.mode != "nearest") || (o.padding_mode != "zeros" && o.padding_mode != "border"))
    throw invalid(fmt::format("grid_sample: unsupported mode \"{}\" or padding_mode \"{}\"", o.mode, o.padding_mode),
                  "mode must be bilinear or nearest, padding_mode zeros or border");
  DType dtype = x.dtype();
  for (Value* v : {&x, &grid})
    if (holds_narrow(*v)) *v = cast(*v, DType::f32);
  Values axes = split(grid, 1, -1);
  Place across = place_of(axes[0], s[3], o), down = place_of(axes[1], s[2], o);
  Value pixels = reshape(transpose(x, {0, 2, 3, 1}), {s[0] * s[2] * s[3], s[1]});
  std::vector<double> starts;
  for (int64_t n = 0; n < s[0]; ++n) starts.push_back(static_cast<double>(n * s[2] * s[3]));
  Value start = constant_of(x.graph(), {DType::i32, {s[0], 1, 1}}, starts), y;
  bool between = o.mode == "bilinear";
  for (bool lower : {false, true})
    for (bool right : {false, true}) {
      if (!between && (lower || right)) continue;
      Value index = start + down.index(lower) * static_cast<double>(s[3]) + across.index(right);
      Value inside = unsqueeze(logical_and(down.inside(lower), across.inside(right)), -1);
      Value tap = select(inside, gather(pixels, index), x.like(0));
      if (between) tap = tap * unsqueeze(down.weight(lower) * across.weight(right), -1);
      y = y ? y + tap : tap;
    }
  return cast(transpose(y, {0, 3, 1, 2}), dtype);
}

}  // namespace tutti
