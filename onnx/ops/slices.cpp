// Slices and padding.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/functions/lines.h"
#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

Ints all_axes(Value x) {
  Ints axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Value sliced(const Context& c) {
  Value x = c.in(0);
  Ints starts = c.integers_or_attribute(1, "starts").value_or(Ints{}),
       ends = c.integers_or_attribute(2, "ends").value_or(Ints{});
  Ints axes = c.integers_or_attribute(3, "axes").value_or(Ints{}),
       steps = c.has(4) ? c.integers(4, "steps") : Ints(starts.size(), 1);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.bad("starts, ends, axes and steps must have the same length");
  Ints from(x.rank(), 0), to = x.shape(), by(x.rank(), 1);
  std::map<size_t, Ints> backward;
  for (size_t k = 0; k < starts.size(); ++k) {
    auto a = static_cast<size_t>(axis_of(c, axes[k], x.rank()));
    int64_t n = x.shape()[a], step = steps[k];
    if (step == 0) c.bad("steps must not contain 0");
    auto place = [&](int64_t at, int64_t low, int64_t high) { return std::clamp(at < 0 ? at + n : at, low, high); };
    if (step > 0) {
      from[a] = place(starts[k], 0, n);
      to[a] = std::max(from[a], place(ends[k], 0, n));
      by[a] = std::min(step, std::max<int64_t>(n, 1));
    } else {
      if (n > int64_t{1} << 24) c.unsupported(fmt::format("a negative step on an axis of {} elements (above 2^24)", n));
      Ints index;
      int64_t stop = place(ends[k], -1, n - 1);
      for (int64_t i = place(starts[k], 0, n - 1); n > 0 && i > stop; i += std::max(step, -n)) index.push_back(i);
      backward[a] = index;
    }
  }
  if (from != Ints(x.rank(), 0) || to != x.shape() || by != Ints(x.rank(), 1)) x = slice(x, from, to, by);
  for (const auto& [axis, index] : backward) x = take(x, axis, index);
  return x;
}

/// The position in an axis of size n that position i of the padded axis reads; -1: none.
int64_t shown(const std::string& mode, int64_t i, int64_t n) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == "wrap") return (i % n + n) % n;
  int64_t period = std::max<int64_t>(1, 2 * (n - 1));  // reflect
  i = (i % period + period) % period;
  return i < n ? i : period - i;
}

Value padded_around(const Context& c) {
  Value x = c.in(0);
  std::string mode = c.s("mode", "constant");
  Ints pads = c.integers_or_attribute(1, "pads").value_or(Ints{}),
       axes = c.has(3) ? c.integers(3, "axes") : all_axes(x);
  if (pads.size() != 2 * axes.size())
    c.bad(fmt::format("pads has {} values for {} axes; it must have two per axis", pads.size(), axes.size()));
  Ints low(x.rank(), 0), high(x.rank(), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    auto a = static_cast<size_t>(axis_of(c, axes[k], x.rank()));
    low[a] = pads[k];
    high[a] = pads[axes.size() + k];
    if (std::max(low[a], high[a]) > (int64_t{1} << 31)) c.bad("pads must be at most 2^31");
  }
  if (mode == "constant") {
    double value = c.has(2) ? c.number(2, "constant_value") : c.f("value", 0);
    Ints amounts;
    for (size_t k = x.rank(); k-- > 0;) {
      amounts.push_back(low[k]);
      amounts.push_back(high[k]);
    }
    return constant_pad(x, amounts, value);
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap") c.unsupported(fmt::format("mode '{}'", mode));
  for (size_t a = 0; a < x.rank(); ++a) {
    int64_t n = x.shape()[a];
    if (low[a] == 0 && high[a] == 0) continue;
    if (n == 0 || low[a] + high[a] > (int64_t{1} << 24))
      c.unsupported(fmt::format("padding of {} elements on an axis of {} elements", low[a] + high[a], n));
    Ints index;
    for (int64_t i = -low[a]; i < n + high[a]; ++i) index.push_back(shown(mode, i, n));
    x = take(x, a, index);
  }
  return x;
}

Value centre(const Context& c) {
  Value x = c.in(0);
  Ints shape = c.integers(1, "shape"), axes = c.ints("axes", all_axes(x));
  if (shape.size() != axes.size())
    c.bad(fmt::format("shape has {} values for {} axes; it must have one per axis", shape.size(), axes.size()));
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t axis = axis_of(c, axes[k], x.rank()), n = x.shape()[static_cast<size_t>(axis)], wanted = shape[k];
    if (wanted < n) x = narrow(x, axis, (n - wanted) / 2, wanted);
    if (wanted <= n) continue;
    Ints low(x.rank()), high(x.rank());
    low[static_cast<size_t>(axis)] = (wanted - n) / 2;
    high[static_cast<size_t>(axis)] = wanted - n - (wanted - n) / 2;
    x = pad(x, low, high, Ints(x.rank()));
  }
  return x;
}

Value triangle(const Context& c) {
  int64_t k = c.has(1) ? c.integer(1, "k") : 0;
  Value x = c.in(0);
  auto limit = static_cast<int64_t>(1) << 30;
  k = std::clamp(k, -limit, limit);
  return c.i("upper", 1) != 0 ? triu(x, k) : tril(x, k);
}

/// Reverses the first sequence_lens[b] steps of every sample.
Value reversed(const Context& c) {
  Value x = c.in(0), lengths = c.in(1);
  int64_t time = c.i("time_axis", 0), batch = c.i("batch_axis", 1);
  if (x.rank() < 2 || time + batch != 1) c.bad("time_axis and batch_axis must be 0 and 1, or 1 and 0");
  Shape shape(x.rank(), 1), row = shape;
  row[static_cast<size_t>(batch)] = x.shape()[static_cast<size_t>(batch)];
  shape[0] = x.shape()[0];
  shape[1] = x.shape()[1];
  Value step = iota(c.graph(), shape, time), length = broadcast(reshape(lengths, row), shape);
  Value from = select(less(step, length), length - 1 - step, step);
  return take_along_axis(x, broadcast(from, x.shape()), time);
}

}  // namespace

void add_slices(Table& t) {
  t["Slice"] = [](const Context& c) { return Values{sliced(c)}; };
  t["Pad"] = [](const Context& c) { return Values{padded_around(c)}; };
  t["CenterCropPad"] = [](const Context& c) { return Values{centre(c)}; };
  t["Trilu"] = [](const Context& c) { return Values{triangle(c)}; };
  t["ReverseSequence"] = [](const Context& c) { return Values{reversed(c)}; };
}

}  // namespace tutti::onnx
