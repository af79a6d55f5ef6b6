#include "graph/functions/indexing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/status.h"
#include "graph/along_axis.h"
#include "graph/functions.h"
#include "graph/ops/add.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/equal.h"
#include "graph/ops/gather.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/logical_not.h"
#include "graph/ops/logical_or.h"
#include "graph/ops/mul.h"
#include "graph/ops/pad.h"
#include "graph/ops/reshape.h"
#include "graph/ops/scatter_add.h"
#include "graph/ops/select.h"
#include "graph/ops/slice.h"
#include "graph/ops/sub.h"
#include "graph/ops/transpose.h"

namespace tutti {
namespace {

size_t axis_at(Value x, int64_t axis) { return static_cast<size_t>(normalize_axis(axis, x.rank())); }
int64_t size_at(Value x, int64_t axis) {
  if (x.rank() == 0) throw invalid("a scalar has no axes", "use a tensor of rank 1 or more");
  return x.shape()[axis_at(x, axis)];
}

void expect_rank(const char* what, Value x, size_t least) {
  if (x.rank() < least)
    throw invalid(fmt::format("{}: x {} must have rank {} or more", what, to_string(x.type()), least));
}

/// Distance of each element of the last two axes above the diagonal.
Value above_diagonal(const char* what, Value x) {
  expect_rank(what, x, 2);
  return iota(x.graph(), {size_at(x, -1)}) - iota(x.graph(), {size_at(x, -2), 1});
}

/// The part of x at its start with this shape; x itself if it has this shape.
Value corner(const char* what, Value x, const Shape& shape) {
  bool fits = x.rank() == shape.size();
  for (size_t a = 0; fits && a < shape.size(); ++a) fits = shape[a] <= x.shape()[a];
  if (!fits)
    throw invalid(fmt::format("{}: {} is too small for the index {}", what, to_string(x.shape()), to_string(shape)),
                  "the index must not be larger than the tensor along any other axis");
  return x.shape() == shape ? x : slice(x, Ints(shape.size()), shape);
}

/// Pads x with zeros at the end of every axis up to that shape.
Value embedded(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Ints high;
  for (size_t a = 0; a < shape.size(); ++a) high.push_back(shape[a] - x.shape()[a]);
  return pad(x, Ints(shape.size()), high);
}

/// bool: whether no later element along the axis has the same index. Compares the positions of elements with the same
/// index bit by bit, starting with the highest, which needs neither a maximum nor ordered writes.
Value is_last(Value index, int64_t size, int64_t axis) {
  Graph& g = index.graph();
  auto at = axis_at(index, axis);
  Shape line(index.rank(), 1);
  line[at] = index.shape()[at];
  Value rest = iota(g, line, static_cast<int64_t>(at)), left;
  int64_t bit = 1;
  while (bit < line[at]) bit *= 2;
  for (; bit >= 1; bit /= 2) {
    Value high = less_equal(rest.like(static_cast<double>(bit)), rest);
    rest = select(high, rest - static_cast<double>(bit), rest);
    Value running = left ? logical_and(left, high) : broadcast(high, index.shape());
    Value beaten = take_along_axis(add_along_axis(index, cast(running, DType::i32), size, axis), index, axis);
    Value stays = logical_or(high, equal(beaten, beaten.like(0)));
    left = left ? logical_and(left, stays) : stays;
  }
  return left;
}

/// {values, indices} of a running maximum; later_wins(earlier, later) says whether the later element wins.
Values running(Value x, int64_t axis, Value (*later_wins)(Value, Value)) {
  Shape line(x.rank(), 1);
  auto at = axis_at(x, axis);
  line[at] = x.shape()[at];
  Value place = broadcast(iota(x.graph(), line, static_cast<int64_t>(at)), x.shape());
  Values best = scan({x, place}, axis, [&](const Values& left, const Values& right) {
    Value wins = logical_or(later_wins(left[0], right[0]), logical_not(equal(right[0], right[0])));
    return Values{select(wins, right[0], left[0]), select(wins, right[1], left[1])};
  });
  return {take_along_axis(x, best[1], axis), best[1]};
}

}  // namespace

// ---- creation

Value arange(Graph& g, double start, double stop, double step, DType dtype) {
  double count = std::ceil((stop - start) / step);
  if (step == 0 || !(count >= 0) || !std::isfinite(count))
    throw invalid(fmt::format("arange: from {} to {} by {}", start, stop, step),
                  "the step must not be 0 and must lead from start to stop");
  Value y = cast(iota(g, {static_cast<int64_t>(count)}), dtype);
  return step == 1 && start == 0 ? y : y * step + start;
}

Value linspace(Graph& g, double start, double stop, int64_t count, DType dtype) {
  if (count < 0 || !is_float(dtype))
    throw invalid(fmt::format("linspace: count {} or dtype {} is invalid", count, name(dtype)),
                  "use a count >= 0 and a float dtype");
  double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  Value place = iota(g, {count}), last = place.like(static_cast<double>(count - 1));
  // Starts from the nearer end, so that both ends are exact.
  Value low = cast(place, dtype) * step + start, high = stop - cast(last - place, dtype) * step;
  return count > 1 ? select(less(place, place.like(static_cast<double>(count / 2))), low, high) : low;
}

Value one_hot(Value index, int64_t classes, DType dtype) {
  return cast(equal(unsqueeze(index, -1), iota(index.graph(), {classes})), dtype);
}

Values meshgrid(const Values& lines, const std::string& indexing) {
  if (indexing != "ij" && indexing != "xy")
    throw invalid(fmt::format("meshgrid: unknown indexing '{}'", indexing), "use 'ij' or 'xy'");
  bool swapped = indexing == "xy" && lines.size() > 1;
  auto place = [&](size_t k) { return swapped && k < 2 ? 1 - k : k; };
  Shape all(lines.size());
  for (size_t k = 0; k < lines.size(); ++k) {
    if (lines[k].rank() > 1)
      throw invalid(fmt::format("meshgrid: {} is not a vector", to_string(lines[k].shape())), "use tensors of rank 1");
    all[place(k)] = num_elements(lines[k].shape());
  }
  Values grids;
  for (size_t k = 0; k < lines.size(); ++k) {
    Shape own(lines.size(), 1);
    own[place(k)] = all[place(k)];
    grids.push_back(broadcast(reshape(lines[k], own), all));
  }
  return grids;
}

// ---- movement

Value tril(Value x, int64_t diagonal) {
  Value above = above_diagonal("tril", x);
  return select(less_equal(above, above.like(static_cast<double>(diagonal))), x, x.like(0));
}

Value triu(Value x, int64_t diagonal) {
  Value above = above_diagonal("triu", x);
  return select(less_equal(above.like(static_cast<double>(diagonal)), above), x, x.like(0));
}

Value masked_fill(Value x, Value mask, double value) {
  if (mask.dtype() != DType::boolean || broadcast_shapes(x.shape(), mask.shape()) != x.shape())
    throw invalid(fmt::format("masked_fill: mask {} does not match x {}", to_string(mask.type()), to_string(x.type())),
                  "the mask must be bool and broadcast to x");
  return select(mask, x.like(value), x);
}

Value roll(Value x, const Ints& shifts, const Ints& axes) {
  if (axes.empty() && shifts.size() == 1) return reshape(roll(reshape(x, {-1}), shifts, {0}), x.shape());
  if (axes.size() != shifts.size())
    throw invalid(fmt::format("roll: {} shifts for {} axes", shifts.size(), axes.size()), "give one shift per axis");
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t n = size_at(x, axes[k]);
    int64_t shift = n == 0 ? 0 : (shifts[k] % n + n) % n;
    if (shift != 0) x = concat({slice_axis(x, axes[k], n - shift, n), slice_axis(x, axes[k], 0, n - shift)}, axes[k]);
  }
  return x;
}

Value repeat(Value x, const Ints& counts) {
  bool valid = counts.size() >= x.rank();
  for (int64_t c : counts) valid = valid && c >= 0;
  if (!valid)
    throw invalid(fmt::format("repeat: invalid counts {} for x {}", to_string(counts), to_string(x.shape())),
                  "give at least one count per axis, each >= 0");
  Shape from, to, y;
  for (size_t a = 0, extra = counts.size() - x.rank(); a < counts.size(); ++a) {
    int64_t n = a < extra ? 1 : x.shape()[a - extra];
    from.insert(from.end(), {1, n});
    to.insert(to.end(), {counts[a], n});
    y.push_back(counts[a] * n);
  }
  return reshape(broadcast(reshape(x, from), to), y);
}

Value repeat_interleave(Value x, int64_t times, int64_t axis) {
  if (times < 0) throw invalid(fmt::format("repeat_interleave: the number of repeats is {}", times), "use 0 or more");
  size_t at = axis_at(x, axis);
  Shape y = x.shape(), wide = y;
  y[at] *= times;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(at) + 1, times);
  return reshape(broadcast(unsqueeze(x, static_cast<int64_t>(at) + 1), wide), y);
}

Value narrow(Value x, int64_t axis, int64_t start, int64_t length) {
  int64_t n = size_at(x, axis), first = start < 0 ? start + n : start;
  if (first < 0 || length < 0 || first + length > n)
    throw invalid(
        fmt::format("narrow: {} elements from index {} are out of range for an axis of size {}", length, start, n));
  return slice_axis(x, axis, first, first + length);
}

Values chunk(Value x, int64_t chunks, int64_t axis) {
  if (chunks < 1) throw invalid(fmt::format("chunk: the number of chunks is {}", chunks), "use 1 or more");
  int64_t n = size_at(x, axis);
  return n == 0 ? Values(static_cast<size_t>(chunks), x) : split(x, (n + chunks - 1) / chunks, axis);
}

Value movedim(Value x, const Ints& source, const Ints& destination) {
  Ints perm(x.rank(), -1);
  std::vector<bool> moved(x.rank());
  bool valid = source.size() == destination.size();
  for (size_t k = 0; valid && k < source.size(); ++k) {
    size_t from = axis_at(x, source[k]), to = axis_at(x, destination[k]);
    valid = !moved[from] && perm[to] < 0;
    moved[from] = true;
    perm[to] = static_cast<int64_t>(from);
  }
  if (!valid)
    throw invalid(fmt::format("movedim: axes {} cannot be moved to {}", to_string(source), to_string(destination)),
                  "give as many destinations as sources, each axis at most once");
  size_t next = 0;
  for (int64_t& p : perm) {
    if (p >= 0) continue;
    while (moved[next]) ++next;
    p = static_cast<int64_t>(next++);
  }
  return transpose(x, perm);
}

Value swapaxes(Value x, int64_t a, int64_t b) {
  Ints perm(x.rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[axis_at(x, a)], perm[axis_at(x, b)]);
  return transpose(x, perm);
}

Value diagonal(Value x, int64_t offset, int64_t axis1, int64_t axis2) {
  if (axis_at(x, axis1) == axis_at(x, axis2))
    throw invalid(fmt::format("diagonal: axes {} and {} are the same axis", axis1, axis2), "give two different axes");
  x = movedim(x, {axis1, axis2}, {-2, -1});
  int64_t rows = size_at(x, -2), columns = size_at(x, -1);
  int64_t top = std::max<int64_t>(-offset, 0), left = std::max<int64_t>(offset, 0);
  int64_t n = std::max<int64_t>(std::min(rows - top, columns - left), 0);
  Shape y(x.shape().begin(), x.shape().end() - 2);
  y.push_back(n);
  if (num_elements(y) == 0) return x.graph().full(x.dtype(), 0, y);
  // In the flattened rows the diagonal has a constant stride.
  Shape flat = y;
  flat.back() = n * columns;
  x = reshape(slice_axis(x, -2, top, top + n), flat);
  Ints starts(flat.size()), strides(flat.size(), 1);
  starts.back() = left;
  strides.back() = columns + 1;
  return slice(x, starts, flat, strides);
}

Value diag_embed(Value x, int64_t offset) {
  expect_rank("diag_embed", x, 1);
  int64_t length = x.shape().back(), n = length + std::abs(offset);
  Shape y = x.shape();
  y.back() = n;
  y.push_back(n);
  if (num_elements(x.shape()) == 0) return x.graph().full(x.dtype(), 0, y);
  Ints low(x.rank()), high(x.rank()), interior(x.rank());
  low.back() = offset > 0 ? offset : -offset * n;
  interior.back() = n;
  high.back() = n * n - low.back() - ((length - 1) * (n + 1) + 1);
  return reshape(pad(x, low, high, interior), y);
}

Value diag(Value x, int64_t offset) {
  if (x.rank() != 1 && x.rank() != 2)
    throw invalid(fmt::format("diag: x {} must have rank 1 or 2", to_string(x.type())),
                  "use diagonal or diag_embed for other ranks");
  return x.rank() == 1 ? diag_embed(x, offset) : diagonal(x, offset);
}

Value diff(Value x, int64_t n, int64_t axis) {
  if (n < 0) throw invalid(fmt::format("diff: n is {}", n), "use 0 or more");
  for (; n > 0 && size_at(x, axis) > 0; --n) {
    int64_t size = size_at(x, axis);
    x = slice_axis(x, axis, 1, size) - slice_axis(x, axis, 0, size - 1);
  }
  return x;
}

// ---- indices

Value index_select(Value x, int64_t axis, Value index) {
  if (index.rank() > 1)
    throw invalid(fmt::format("index_select: index {} must have rank 0 or 1", to_string(index.shape())),
                  "use gather for other ranks");
  return gather(x, reshape(index, {-1}), axis);
}

Value scatter_along_axis(Value x, Value index, Value src, int64_t axis, bool accumulate) {
  size_t at = axis_at(x, axis);
  src = corner("scatter_along_axis: src", src, index.shape());
  Shape touched = index.shape();
  if (touched.size() == x.rank()) touched[at] = x.shape()[at];
  corner("scatter_along_axis: x", x, touched);
  if (num_elements(index.shape()) == 0) return x;
  int64_t size = touched[at];
  auto spread = [&](Value v) { return embedded(add_along_axis(index, v, size, axis), x.shape()); };
  if (accumulate) return x + spread(src);
  Value last = is_last(index, size, axis);
  Value hit = spread(cast(last, DType::i32));
  return select(equal(hit, hit.like(0)), x, spread(select(last, src, src.like(0))));
}

Value index_put(Value x, const Values& indices, Value values, bool accumulate) {
  if (indices.empty() || indices.size() > x.rank())
    throw invalid(fmt::format("index_put: {} indices do not match x {}", indices.size(), to_string(x.shape())),
                  "give 1 to rank(x) indices, one per leading axis");
  Shape common;
  for (Value i : indices) common = broadcast_shapes(common, i.shape());
  int64_t positions = 1, count = num_elements(common);
  Value flat;
  for (size_t a = 0; a < indices.size(); ++a) {
    Value i = indices[a];
    int64_t n = x.shape()[a];
    i = select(less(i, i.like(0)), i + static_cast<double>(n), i);
    flat = flat ? flat * static_cast<double>(n) + i : i;
    positions *= n;
  }
  Shape rest(x.shape().begin() + static_cast<std::ptrdiff_t>(indices.size()), x.shape().end()), whole = common;
  whole.insert(whole.end(), rest.begin(), rest.end());
  if (num_elements(whole) == 0) return x;
  int64_t row = num_elements(rest);
  flat = reshape(broadcast(flat, common), {count});
  values = reshape(broadcast(values, whole), {count, row});
  if (accumulate) return x + reshape(scatter_add(flat, values, positions), x.shape());
  Value last = is_last(flat, positions, 0);
  Value hit = scatter_add(flat, cast(last, DType::i32), positions);
  Value put = scatter_add(flat, select(reshape(last, {count, 1}), values, values.like(0)), positions);
  return reshape(select(reshape(equal(hit, hit.like(0)), {positions, 1}), reshape(x, {positions, row}), put),
                 x.shape());
}

// ---- order

Value argsort(Value x, int64_t axis, bool descending) { return sort(x, axis, descending)[1]; }

Values top_k(Value x, int64_t k, int64_t axis, bool largest) {
  if (k < 0) throw invalid(fmt::format("top_k: k is {}", k), "use 0 or more");
  return sort(x, axis, largest, k);
}

Values cummax(Value x, int64_t axis) { return running(x, axis, less_equal); }
Values cummin(Value x, int64_t axis) {
  return running(x, axis, [](Value earlier, Value later) { return less_equal(later, earlier); });
}

}  // namespace tutti
