// The image gradient of a strided convolution, as one product per phase (pixel position modulo the strides).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/rounding.h"
#include "kernels/codegen/conv.h"

namespace tutti::codegen {
namespace {

/// The pixels of one phase along an axis as rows, and the taps that read them, counted from the last.
struct Phase {
  ConvAxis axis;
  int64_t last, step;  ///< the last tap, and the step between taps
};

/// The phase of the pixels that a tap reads.
int64_t remainder_of(const WindowAxis& w, int64_t tap) {
  return ((tap * w.dilation - w.padding) % w.stride + w.stride) % w.stride;
}

Phase phase_of(const WindowAxis& w, int64_t remainder) {
  int64_t step = w.stride / std::gcd(w.stride, w.dilation), last = w.kernel - 1;
  while (last >= 0 && remainder_of(w, last) != remainder) --last;
  int64_t taps = last < 0 ? 0 : last / step + 1, rows = ceil_div(std::max<int64_t>(w.size - remainder, 0), w.stride);
  // Pixel q * stride + remainder uses result q + (remainder + padding - tap * dilation) / stride.
  int64_t offset = taps ? (remainder + w.padding - last * w.dilation) / w.stride : 0;
  return {{w.count, rows, 1, taps, step * w.dilation / w.stride, offset, 1}, last, step};
}

/// Contribution of the skipped products with zeros (NaN for inf and NaN): per phase and column, in scratch `to`.
Launch outside(const Target& t, const Conv& c, const ConvProduct& p, int to) {
  Kernel k = portable("conv_outside", {{"T", element_of(p.dtype)}});
  ConvProduct in_order = p;
  in_order.b_tap_x = 0;
  describe_product(in_order, k, k.as_number());
  k.set("TOTAL", p.columns * p.groups);
  k.set("K1", p.k_planes);
  k.set("REMAINDERS", c.h.stride * c.w.stride);
  k.set("TAPS", p.taps());
  for (int64_t tap = 0; tap < p.taps(); ++tap) {
    int64_t number = remainder_of(c.h, tap / c.w.kernel) * c.w.stride + remainder_of(c.w, tap % c.w.kernel);
    k.set(fmt::format("BIT_{}", tap), fmt::format("(1u << {})", number));
  }
  k.elements = static_cast<uint64_t>(p.b_elements);
  return dispatch_items(t, std::move(k), p.columns * p.groups, {1, to});
}

/// Writes the pixels of a phase that no tap reads.
Launch blank(const Target& t, const ConvProduct& p, int from) {
  Kernel k = portable("conv_blank", {{"T", element_of(p.dtype)}});
  k.set("TOTAL", p.y_elements);
  k.set("Y_OF(e)", y_of_result(p, "e"));
  k.set("OUTSIDE_OF(e)", fmt::format("((e) / {} % {} + {})", p.positions(), p.columns * p.groups, p.bias_first));
  k.elements = static_cast<uint64_t>(p.y_reach());
  return dispatch_items(t, std::move(k), p.y_elements, {from, 2});
}

/// What all phases read along an axis.
ConvAxis frame_of(const WindowAxis& w) {
  int64_t first = 0, last = -1;
  for (int64_t remainder = 0; remainder < w.stride; ++remainder) {
    ConvAxis a = phase_of(w, remainder).axis;
    if (a.taps == 0 || a.rows == 0) continue;
    const bool none = last < first;
    first = none ? a.offset : std::min(first, a.offset);
    last = std::max(none ? a.offset : last, a.offset + a.span() - 1);
  }
  return {w.count, last - first + 1, 1, 1, 1, first, 1};
}

bool same(const Target& t, const Launch& a, const Launch& b) {
  if (a.buffers != b.buffers || a.groups != b.groups) return false;
  const KernelSource x = render(t, *a.kernel), y = render(t, *b.kernel);
  return x.text == y.text && x.numbers == y.numbers;
}

}  // namespace

std::optional<LaunchList> conv_phases(const Target& t, const Conv& c, const ConvProduct& p) {
  constexpr int64_t bits = 32;
  int64_t phases = c.h.stride * c.w.stride;
  if (phases == 1 || phases > bits || p.taps() > 64 || p.k_planes < 8 || !is_float(p.dtype) || p.y_elements == 0 ||
      p.k_planes + phases + 2 > static_cast<int64_t>(std::min<uint32_t>(t.max_rounds, 1 << 30)))
    return {};
  constexpr int spoilt = 3;  // index of the scratch buffer after operands and result
  int64_t columns = p.columns * p.groups;
  LaunchList list;
  list.scratch_bytes = {static_cast<uint64_t>(phases * columns) * size_of(element_of(p.dtype))};
  list.launches.push_back(outside(t, c, p, spoilt));
  std::optional<Launch> copied;  // what the phase before began with: a copy of the image in the first scratch buffer
  for (int64_t n = 0; n < phases; ++n) {
    Phase y = phase_of(c.h, n / c.w.stride), x = phase_of(c.w, n % c.w.stride);
    ConvProduct q = p;
    q.y = y.axis;
    q.x = x.axis;
    q.b_tap = y.last * c.w.kernel + x.last;
    q.b_tap_y = y.step * c.w.kernel;
    q.b_tap_x = x.step;
    q.y_line = c.h.stride * c.w.size;
    q.y_step = c.w.stride;
    q.y_first = n / c.w.stride * c.w.size + n % c.w.stride;
    q.y_elements = q.rows() * columns;
    q.bias = true;
    q.bias_first = n * columns;
    q.frame = {frame_of(c.h), frame_of(c.w)};
    if (q.y_elements == 0) continue;
    if (q.taps() == 0) {
      list.launches.push_back(blank(t, q, spoilt));
      continue;
    }
    LaunchList part = conv_product(t, q);
    const bool known = copied && same(t, *copied, part.launches[0]);
    copied = part.launches[0].name == "conv_pad" ? std::optional(part.launches[0]) : std::nullopt;
    if (known) part.launches.erase(part.launches.begin());
    for (Launch& launch : part.launches) {
      for (int& buffer : launch.buffers) buffer = buffer == 2 ? spoilt : buffer == 3 ? 2 : buffer;
      list.launches.push_back(std::move(launch));
    }
    // Phases run sequentially and share scratch.
    list.scratch_bytes.resize(std::max(list.scratch_bytes.size(), part.scratch_bytes.size() + 1));
    for (size_t s = 0; s < part.scratch_bytes.size(); ++s)
      list.scratch_bytes[s + 1] = std::max(list.scratch_bytes[s + 1], part.scratch_bytes[s]);
  }
  return list;
}

}  // namespace tutti::codegen
