#include "core/geometry/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/status.h"

namespace tutti {
namespace {

constexpr int64_t limit = int64_t{1} << 30;  // products of two such numbers stay far from overflow
constexpr const char* axis_names[] = {"height", "width"};

int64_t two(const Attrs& a, const char* name, size_t d, int64_t least) {
  const Ints& list = a.ints(name);
  if (list.size() != 2) throw invalid(fmt::format("{} has {} values, expected two (y, x)", name, list.size()));
  if (list[d] < least || list[d] > limit)
    throw invalid(fmt::format("{} {}: must be at least {} and at most {}", name, to_string(list), least, limit));
  return list[d];
}

int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

}  // namespace

std::pair<int64_t, int64_t> WindowAxis::inside(int64_t tap) const {
  int64_t shift = at(0, tap);  // o is inside for 0 <= o * stride + shift < size
  int64_t last = std::min(count, ceil_div(size - shift, stride));
  return {std::min(ceil_div(-shift, stride), last), last};
}

bool WindowAxis::blind() const {
  auto misses = [&](int64_t o) {
    int64_t tap = ceil_div(-at(o, 0), dilation);  // the first tap at position 0 or later
    return tap >= kernel || at(o, tap) >= size;
  };
  // The first window begins furthest before the input, the last ends furthest after it. Windows between them read only
  // padding if the input lies in a gap between taps; the tap positions are periodic.
  if (misses(0) || misses(count - 1)) return true;
  if (dilation <= size) return false;
  int64_t others = std::min(count, dilation / std::gcd(stride, dilation));
  for (int64_t o = 1; o < others && at(o, 0) < 0; ++o)
    if (misses(o)) return true;
  return false;
}

WindowAxis window_axis(const Attrs& a, size_t d, int64_t size, int64_t kernel) {
  WindowAxis w{
      size, kernel, two(a, "stride", d, 1), two(a, "padding", d, 0), a.has("dilation") ? two(a, "dilation", d, 1) : 1,
      0};
  if (kernel < 1 || kernel > limit || size > limit)
    throw invalid(
        fmt::format("input {} {}, kernel size {}: the kernel size must be at least 1, and both must be at most {}",
                    axis_names[d], size, kernel, limit));
  int64_t padded = size + 2 * w.padding;
  if (w.reach() > padded)
    throw invalid(
        fmt::format(
            "a kernel of size {} with dilation {} spans {} elements, but the padded input has only {} along its {}",
            kernel, w.dilation, w.reach(), padded, axis_names[d]),
        "use a smaller kernel or dilation, more padding, or larger images");
  w.count = (padded - w.reach()) / w.stride + 1;
  return w;
}

WindowGeometry window_geometry(const Shape& x, const Attrs& a) {
  if (x.size() != 4) throw invalid(fmt::format("images {} need 4 dimensions, [N, C, H, W]", to_string(x)));
  return {x[0], x[1], window_axis(a, 0, x[2], two(a, "kernel", 0, 1)), window_axis(a, 1, x[3], two(a, "kernel", 1, 1))};
}

WindowGeometry pool_geometry(const Shape& x, const Attrs& a) {
  WindowGeometry g = window_geometry(x, a);
  if (g.h.blind() || g.w.blind())
    throw invalid(fmt::format("kernel {}, padding {}: some windows over images {} would contain only padding",
                              to_string(a.ints("kernel")), to_string(a.ints("padding")), to_string(x)),
                  "use a padding of at most half the kernel");
  return g;
}

WindowGeometry fold_geometry(const Shape& windows, const Attrs& a) {
  const Ints& size = a.ints("size");
  if (windows.size() != 6) throw invalid("x must have the shape [N, C, kh, kw, OH, OW]");
  if (size.size() != 2) throw invalid(fmt::format("size {}: expected two numbers (H, W)", to_string(size)));
  WindowGeometry g = window_geometry({windows[0], windows[1], size[0], size[1]}, a);
  if (windows != g.windows())
    throw invalid(fmt::format("x does not match size {}: the windows of such an image have the shape {}",
                              to_string(size), to_string(g.windows())));
  return g;
}

}  // namespace tutti
