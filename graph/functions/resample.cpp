#include "graph/functions/resample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/status.h"
#include "graph/functions/lines.h"
#include "graph/functions/pooling.h"
#include "graph/in_f32.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/reshape.h"
#include "graph/ops/transpose.h"

namespace tutti {
namespace {

/// One spatial axis: from `in` to `out` positions; `factor` is 0 if the scale is computed from the sizes.
struct Axis {
  int64_t in, out;
  double factor;
};

bool is_nearest(const std::string& mode) { return mode == "nearest" || mode == "nearest-exact"; }

/// In f32, as PyTorch computes these positions.
Ints nearest(const Axis& a, bool exact) {
  float scale = a.factor > 0 ? static_cast<float>(1 / a.factor) : static_cast<float>(a.in) / static_cast<float>(a.out);
  Ints index;
  for (int64_t i = 0; i < a.out; ++i) {
    float at = (static_cast<float>(i) + (exact ? 0.5f : 0.0f)) * scale;
    int64_t place = a.in == a.out ? i : !exact && a.out == 2 * a.in ? i / 2 : static_cast<int64_t>(std::floor(at));
    index.push_back(std::min(place, a.in - 1));
  }
  return index;
}

/// The number of repetitions of every position if it is uniform; else 0.
int64_t repeats(const Axis& a, const Ints& index) {
  int64_t times = a.out / a.in;
  for (int64_t i = 0; i < a.out; ++i)
    if (times * a.in != a.out || index[static_cast<size_t>(i)] != i / times) return 0;
  return times;
}

/// Repeats every position of the axis `times` times in a row.
Value repeat(Value x, size_t axis, int64_t times) {
  Shape shape = x.shape(), lines = around_axis(shape, axis);
  shape[axis] *= times;
  Value apart = reshape(x, {lines[0] * lines[1], 1, lines[2]});
  return reshape(broadcast(apart, {lines[0] * lines[1], times, lines[2]}), shape);
}

/// The weights of the four taps around a position, starting with the one before the left neighbour; `t` is the distance
/// from the left neighbour (Keys 1981, A = -0.75).
std::vector<double> cubic(double t) {
  constexpr double a = -0.75;
  auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

/// The interpolation matrix: row i holds the weights of all positions of x for position i of y.
Matrix interpolation(const Axis& a, bool is_cubic, bool align_corners) {
  auto in = static_cast<double>(a.in), out = static_cast<double>(a.out);
  double scale = align_corners ? (a.out > 1 ? (in - 1) / (out - 1) : 0) : a.factor > 0 ? 1 / a.factor : in / out;
  Matrix m(a.out, a.in);
  for (int64_t i = 0; i < a.out; ++i) {
    double at = align_corners ? scale * static_cast<double>(i) : scale * (static_cast<double>(i) + 0.5) - 0.5;
    if (!is_cubic) at = std::max(at, 0.0);
    int64_t place = std::min(static_cast<int64_t>(std::floor(at)), a.in - 1);
    double t = std::clamp(at - static_cast<double>(place), 0.0, 1.0);
    int64_t first = is_cubic ? place - 1 : place;
    for (double weight : is_cubic ? cubic(t) : std::vector<double>{1 - t, t})
      m(i, std::clamp<int64_t>(first++, 0, a.in - 1)) += weight;
  }
  return m;
}

std::vector<Axis> axes_of(Value x, const InterpolateOptions& o) {
  size_t count = x.rank() < 3 ? 0 : x.rank() - 2;
  bool by_size = !o.size.empty();
  size_t given = by_size ? o.size.size() : o.scale_factor.size();
  if (count < 1 || count > 3 || by_size == !o.scale_factor.empty() || (given != count && (by_size || given != 1)))
    throw invalid(fmt::format("interpolate: x {} does not match {} sizes and {} scale factors", to_string(x.shape()),
                              o.size.size(), o.scale_factor.size()),
                  "x must be [N, C, 1 to 3 spatial axes]; give either one size or one factor per spatial axis");
  std::vector<Axis> axes;
  for (size_t k = 0; k < count; ++k) {
    Axis a{x.shape()[k + 2], by_size ? o.size[k] : 0, 0};
    if (!by_size) {
      double factor = o.scale_factor[given == 1 ? 0 : k];
      if (!(factor > 0 && factor < 1e6))
        throw invalid(fmt::format("interpolate: scale factor {}", factor), "use a factor above 0 and below 1e6");
      a.out = static_cast<int64_t>(std::floor(static_cast<double>(a.in) * factor));
      if (!o.recompute_scale_factor) a.factor = factor;
    }
    if (a.in < 1 || a.out < 1)
      throw invalid(fmt::format("interpolate: an axis of size {} cannot be resized to {}", a.in, a.out),
                    "both sizes must be at least 1");
    axes.push_back(a);
  }
  return axes;
}

}  // namespace

Value interpolate(Value x, const InterpolateOptions& o) {
  std::vector<Axis> axes = axes_of(x, o);
  static constexpr const char* linear[] = {"linear", "bilinear", "trilinear"};
  bool is_linear = o.mode == linear[axes.size() - 1], is_cubic = o.mode == "bicubic" && axes.size() == 2;
  if (!is_nearest(o.mode) && o.mode != "area" && !is_linear && !is_cubic)
    throw invalid(fmt::format("interpolate: mode \"{}\" is not supported for x {}", o.mode, to_string(x.shape())),
                  fmt::format("use nearest, nearest-exact, area, {}{}", linear[axes.size() - 1],
                              axes.size() == 2 ? " or bicubic" : ""));
  if (o.align_corners && !is_linear && !is_cubic)
    throw invalid(fmt::format("interpolate: align_corners has no effect with mode \"{}\"", o.mode),
                  "omit align_corners");
  if (o.mode == "area") {
    Ints size;
    for (const Axis& a : axes) size.push_back(a.out);
    return adaptive_avg_pool(x, size);
  }
  if (is_nearest(o.mode)) {
    for (size_t k = axes.size(); k-- > 0;) {
      Ints index = nearest(axes[k], o.mode == "nearest-exact");
      if (int64_t times = repeats(axes[k], index))
        x = times == 1 ? x : repeat(x, k + 2, times);
      else
        x = take(x, k + 2, index);
    }
    return x;
  }
  return rounded_once(x, [&](Value y) {
    for (size_t k = axes.size(); k-- > 0;)
      if (axes[k].in != axes[k].out || axes[k].factor > 0)
        y = along_axis(interpolation(axes[k], is_cubic, o.align_corners), y, k + 2);
    return y;
  });
}

namespace {

/// Throws Error unless the last axes of x are divisible by `multiples`.
void check_shuffle(const char* what, Value x, size_t rank, int64_t factor, const Ints& multiples) {
  bool fits = x.rank() >= rank && factor >= 1 && factor < 1 << 20;
  for (size_t k = 0; fits && k < multiples.size(); ++k)
    fits = x.shape()[x.rank() - multiples.size() + k] % multiples[k] == 0;
  if (!fits)
    throw invalid(fmt::format("{}: x {} cannot be divided by factor {}", what, to_string(x.shape()), factor),
                  fmt::format("the last axes must be multiples of {}", to_string(multiples)));
}

}  // namespace

Value pixel_shuffle(Value x, int64_t upscale_factor) {
  int64_t r = upscale_factor;
  check_shuffle("pixel_shuffle", x, 3, r, {r * r, 1, 1});
  Shape to(x.shape().begin(), x.shape().end() - 3);
  int64_t outer = num_elements(to), c = x.shape()[to.size()] / (r * r), h = x.shape()[to.size() + 1],
          w = x.shape()[to.size() + 2];
  Value pixels = transpose(reshape(x, {outer * c, r, r, h, w}), {0, 3, 1, 4, 2});
  to.insert(to.end(), {c, h * r, w * r});
  return reshape(pixels, to);
}

Value pixel_unshuffle(Value x, int64_t downscale_factor) {
  int64_t r = downscale_factor;
  check_shuffle("pixel_unshuffle", x, 3, r, {1, r, r});
  Shape to(x.shape().begin(), x.shape().end() - 3);
  int64_t outer = num_elements(to), c = x.shape()[to.size()], h = x.shape()[to.size() + 1] / r,
          w = x.shape()[to.size() + 2] / r;
  Value channels = transpose(reshape(x, {outer * c, h, r, w, r}), {0, 2, 4, 1, 3});
  to.insert(to.end(), {c * r * r, h, w});
  return reshape(channels, to);
}

Value channel_shuffle(Value x, int64_t groups) {
  if (x.rank() < 2)
    throw invalid(fmt::format("channel_shuffle: x {} has no channel axis", to_string(x.shape())), "use x [N, C, ...]");
  if (groups < 1 || x.shape()[1] % groups)
    throw invalid(
        fmt::format("channel_shuffle: cannot divide the channels of {} into {} groups", to_string(x.shape()), groups),
        "use a number of groups that divides C of x [N, C, ...]");
  int64_t n = x.shape()[0], c = x.shape()[1], inner = num_elements(Shape(x.shape().begin() + 2, x.shape().end()));
  return reshape(transpose(reshape(x, {n, groups, c / groups, inner}), {0, 2, 1, 3}), x.shape());
}

}  // namespace tutti
