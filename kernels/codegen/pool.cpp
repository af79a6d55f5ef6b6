// Pooling and its gradients.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "core/base/status.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {
namespace {

void erase_param(Kernel& k, const char* name) {
  std::erase_if(k.params, [&](const Param& p) { return p.name == name; });
}

/// Number of unrolled taps or windows; the rest are loop rounds.
int64_t unrolled(int64_t count) { return count <= 16 ? count : 8; }

/// The kernel with its window; `count`: taps or windows per work-item.
Kernel pool_kernel(const char* name, const Pool& p, int64_t count) {
  if (!is_float(p.dtype))
    throw Error(Code::declined, fmt::format("pooling of dtype {} is not supported", tutti::name(p.dtype)));
  if (count > 0x7fffffff)
    throw Error(Code::declined, fmt::format("pooling over windows of {} elements is not supported", count));
  Kernel k = portable(name, {{"T", element_of(p.dtype)}});
  const std::pair<const char*, int64_t> numbers[] = {{"H", p.h.size},     {"W", p.w.size},      {"KH", p.h.kernel},
                                                     {"KW", p.w.kernel},  {"OH", p.h.count},    {"OW", p.w.count},
                                                     {"SH", p.h.stride},  {"SW", p.w.stride},   {"PH", p.h.padding},
                                                     {"PW", p.w.padding}, {"DH", p.h.dilation}, {"DW", p.w.dilation}};
  for (auto& [n, value] : numbers)
    if (k.takes(n)) k.set(n, value);
  if (k.takes("INNER")) k.set("INNER", p.inner);
  k.elements = static_cast<uint64_t>(p.planes * p.inner * std::max(p.h.size * p.w.size, p.h.count * p.w.count));
  return k;
}

int64_t results(const Pool& p) { return p.planes * p.h.count * p.w.count * p.inner; }

LaunchList launch(const Target& t, Kernel k, int64_t total, std::vector<int> buffers) {
  k.set("TOTAL", total);
  return {{dispatch_items(t, std::move(k), total, std::move(buffers))}, {}};
}

/// The launch of a kernel whose work-items loop over lines of results.
LaunchList launch_lines(const Target& t, Kernel k, const Pool& p, std::vector<int> buffers) {
  constexpr int64_t most = 4096, shares = 16;  // results of a work-item; work-items per compute unit
  const int64_t count = p.planes * p.h.count;
  const int64_t lines =
      std::max<int64_t>(1, std::min(most / p.w.count, count / (shares * std::max<int64_t>(1, t.compute_units))));
  k.set("COUNT", count);
  k.set("LINES", lines);
  k.work = static_cast<double>(lines * p.w.count * p.h.kernel * p.w.kernel) / 4;  // vectors
  return {{dispatch(t, std::move(k), static_cast<uint64_t>(ceil_div(count, lines)), std::move(buffers))}, {}};
}

/// Whether all taps of all windows lie inside the image.
bool inside(const WindowAxis& a) {
  return a.padding == 0 && (a.count - 1) * a.stride + (a.kernel - 1) * a.dilation < a.size;
}

/// Whether work-items loop over the lines of windows of so many taps, which the loop writes out.
bool in_lines(const Target& t, const Pool& p) {
  return p.inner == 1 && loops_over(t, p.w.count) && p.h.kernel * p.w.kernel <= 16;
}

Kernel windows(const Target& t, const Pool& p) {
  int64_t taps = p.h.kernel * p.w.kernel;
  const bool lines = in_lines(t, p) && inside(p.h) && inside(p.w);
  Kernel k = pool_kernel(lines ? "pool_lines" : "pool", p, taps);
  k.set("TAPS", taps);
  if (lines) return k;
  k.set("UNROLL", unrolled(taps));
  // Omits conditions that hold for all windows of the shape.
  std::string inside;
  auto require = [&](bool needed, const std::string& what) {
    if (needed) inside += (inside.empty() ? "" : " && ") + what;
  };
  auto last = [](const WindowAxis& a) { return (a.count - 1) * a.stride + (a.kernel - 1) * a.dilation - a.padding; };
  require(taps % unrolled(taps) != 0, "tap < TAPS");
  require(p.h.padding > 0, "h >= 0");
  require(last(p.h) >= p.h.size, "h < H");
  require(p.w.padding > 0, "w >= 0");
  require(last(p.w) >= p.w.size, "w < W");
  k.set("INSIDE", inside.empty() ? "true" : inside);
  return k;
}

/// The launch of such a kernel.
LaunchList launch_windows(const Target& t, Kernel k, const Pool& p, std::vector<int> buffers) {
  if (k.takes("LINES")) return launch_lines(t, std::move(k), p, std::move(buffers));
  return launch(t, std::move(k), results(p), std::move(buffers));
}

/// Expression of the number of taps of the window at `o` inside the image.
std::string taps_inside(const WindowAxis& a, const char* o) {
  int64_t last = (a.count - 1) * a.stride + (a.kernel - 1) * a.dilation - a.padding;
  if (a.padding == 0 && last < a.size) return std::to_string(a.kernel);
  std::string start = fmt::format("(({}) * {} - {})", o, a.stride, a.padding);
  // Taps from the first with start + k * dilation >= 0 to the last with start + k * dilation < size.
  std::string first = fmt::format("({0} < 0 ? ({1} - {0}) / {2} : 0)", start, a.dilation - 1, a.dilation);
  std::string end = fmt::format("({0} >= {1} ? 0 : ({2} - {0}) / {3} < {4} ? ({2} - {0}) / {3} : {4})", start, a.size,
                                a.size - 1 + a.dilation, a.dilation, a.kernel);
  return fmt::format("({} - {})", end, first);
}

Kernel pixel_windows(const Pool& p) {
  auto candidates = [](const WindowAxis& a) { return (a.kernel - 1) * a.dilation / a.stride + 1; };
  int64_t across = candidates(p.w), count = candidates(p.h) * across;
  Kernel k = pool_kernel("pool_dx", p, count);
  k.set("UNROLL", unrolled(count));
  k.set("WINDOWS", count);
  k.set("ACROSS", across);
  return k;
}

Kernel window_pixels(const Pool& p, bool lines) {
  int64_t taps = p.h.kernel * p.w.kernel;
  Kernel k = pool_kernel(lines ? "pool_dx_lines" : "pool_dx_apart", p, taps);
  k.set("TAPS", taps);
  return k;
}

/// Whether the windows cover each pixel exactly once.
bool covers_once(const WindowAxis& a) {
  return a.padding == 0 && a.kernel == a.stride && a.count * a.stride == a.size && (a.kernel == 1 || a.dilation == 1);
}

/// The gradient of pooling. `share`: the contribution of a window with cotangent v to its pixel.
LaunchList gradient(const Target& t, const Pool& p, bool index, const std::string& share) {
  int64_t total = p.planes * p.h.size * p.w.size * p.inner;
  if (total == 0) return {};
  bool apart = covers_once(p.h) && covers_once(p.w) && p.h.kernel * p.w.kernel <= 16;
  const bool lines = apart && in_lines(t, p);
  Kernel k = apart ? window_pixels(p, lines) : pixel_windows(p);
  k.set("SHARE(v,named,tap,oh,ow)", share);
  k.set("INDEX(at)", index ? "index(at)" : "0");
  if (!index) erase_param(k, "index");
  std::vector<int> buffers = {0, 1};
  if (index) buffers.push_back(2);
  if (lines) return launch_lines(t, std::move(k), p, std::move(buffers));
  return launch(t, std::move(k), apart ? results(p) : total, std::move(buffers));
}

}  // namespace

LaunchList max_pool(const Target& t, const Pool& p, bool y, bool index) {
  if (results(p) == 0 || !(y || index)) return {};
  Kernel k = windows(t, p);
  k.set("START", "float best = 0.0f; int tap_ = -1");
  k.set("TAKE(v,tap)",
        "bool better = inside && (tap_ < 0 || v > best || (NAN_OF(v) && !NAN_OF(best))); best = better ? v : best; "
        "tap_ = better ? tap : tap_");
  k.set("FINISH", fmt::format("{}{}", y ? "y_set(e, best); " : "", index ? "index_set(e, tap_)" : ""));
  std::vector<int> buffers = {0};
  if (y)
    buffers.push_back(1);
  else
    erase_param(k, "y");
  if (index)
    buffers.push_back(y ? 2 : 1);
  else
    erase_param(k, "index");
  return launch_windows(t, std::move(k), p, std::move(buffers));
}

LaunchList max_pool_dx(const Target& t, const Pool& p) {
  return gradient(t, p, true, "((named) == (tap) ? (v) : 0.0f)");
}

LaunchList avg_pool(const Target& t, const Pool& p, bool whole) {
  if (results(p) == 0) return {};
  Kernel k = windows(t, p);
  erase_param(k, "index");
  k.set("START", "float sum = 0.0f; int n = 0");
  k.set("TAKE(v,tap)", "sum += inside ? v : 0.0f; n += inside ? 1 : 0");
  k.set("FINISH", fmt::format("y_set(e, sum / F32({}))", whole ? std::to_string(p.h.kernel * p.w.kernel) : "n"));
  return launch_windows(t, std::move(k), p, {0, 1});
}

LaunchList avg_pool_dx(const Target& t, const Pool& p, bool whole) {
  std::string count =
      whole ? std::to_string(p.h.kernel * p.w.kernel) : taps_inside(p.h, "oh") + " * " + taps_inside(p.w, "ow");
  return gradient(t, p, false, fmt::format("((v) / F32({}))", count));
}

}  // namespace tutti::codegen
