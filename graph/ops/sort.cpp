#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/status.h"
#include "graph/along_axis.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/add_along_axis.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/equal.h"
#include "graph/ops/flip.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/logical_or.h"
#include "graph/ops/neg.h"
#include "graph/ops/pad.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"
#include "graph/ops/take_along_axis.h"
#include "graph/ops/transpose.h"

namespace tutti {

// public
extern TUTTI_API const OpDef sort_op;
/// {values, indices (i32)} of x sorted along `axis`; the sort is stable. NaN counts as the largest. `count` >= 0:
/// returns only the first `count` elements.
inline Values sort(Value x, int64_t axis = -1, bool descending = false, int64_t count = -1) {
  return call_all(sort_op, {x}, {{"axis", Ints{axis}}, {"descending", Ints{descending}}, {"count", Ints{count}}});
}
// end of public
namespace {

/// The lines of x along the axis, and how many elements of each to return.
struct Order : AxisGeometry {
  bool descending;
  int64_t count;
};

Order order_of(const Shape& x, const Attrs& a) {
  AxisGeometry g = axis_geometry(x, a.i("axis"));
  int64_t count = a.i("count");
  if (g.size > std::numeric_limits<int32_t>::max())
    throw invalid(
        fmt::format("cannot sort an axis of {} elements: indices are i32, so the maximum is 2^31 - 1", g.size),
        "sort fewer elements at a time");
  if (count > g.size)
    throw invalid(fmt::format("count {} is larger than the axis size {}", count, g.size),
                  "use a count of at most the axis size");
  return {g, a.i("descending") != 0, count < 0 ? g.size : count};
}

Types infer(std::span<const TensorType> in, const Attrs& a) {
  if (in[0].dtype == DType::i64) throw invalid("x is i64", "cast it to i32");
  Order o = order_of(in[0].shape, a);
  Shape y = in[0].shape;
  y[o.axis] = o.count;
  return {{in[0].dtype, y}, {DType::i32, y}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  Order o = order_of(in[0].shape(), a);
  std::vector<int64_t> rank(static_cast<size_t>(o.size));
  for (int64_t line = 0; line < o.outer * o.inner; ++line) {
    int64_t outer = line / o.inner, inner = line % o.inner;
    const double* x = in[0].at.data() + outer * o.size * o.inner + inner;
    auto less = [&](double p, double q) { return p < q || (q != q && p == p); };
    std::iota(rank.begin(), rank.end(), 0);
    std::stable_sort(rank.begin(), rank.end(), [&](int64_t i, int64_t j) {
      double p = x[i * o.inner], q = x[j * o.inner];
      return o.descending ? less(q, p) : less(p, q);
    });
    for (int64_t i = 0; i < o.count; ++i) {
      auto at = static_cast<size_t>((outer * o.count + i) * o.inner + inner);
      out[0].at[at] = x[rank[static_cast<size_t>(i)] * o.inner];
      out[1].at[at] = static_cast<double>(rank[static_cast<size_t>(i)]);
    }
  }
}

/// Keys [n, lines] without NaN, to be sorted in ascending order, and positions as tie-breakers.
struct Keyed {
  Value key, tie;
};

/// Whether p comes before q; a strict total order.
Value before(const Keyed& p, const Keyed& q) {
  return logical_or(less(p.key, q.key), logical_and(equal(p.key, q.key), less(p.tie, q.tie)));
}

/// The largest key of the dtype.
double highest(DType t) {
  return is_float(t) ? std::numeric_limits<double>::infinity() : t == DType::u32 ? 4294967295.0 : 2147483647.0;
}

/// Maps NaN to the infinity on its side, with a position beyond those of all other elements.
Keyed keys_of(Value x, bool descending) {
  if (x.dtype() == DType::u8 || x.dtype() == DType::boolean) x = cast(x, DType::i32);
  double n = static_cast<double>(x.shape()[0]);
  Value place = iota(x.graph(), {x.shape()[0], 1});
  if (!is_float(x.dtype())) return {descending ? (x.dtype() == DType::u32 ? highest(x.dtype()) : -1.0) - x : x, place};
  Value number = equal(x, x);
  return {select(number, descending ? -x : x, x.like(descending ? -highest(x.dtype()) : highest(x.dtype()))),
          select(number, place, descending ? place - n : place + n)};
}

/// The positions of the first `count` elements: computes each element's rank by comparing all pairs.
Value by_rank(const Keyed& k, int64_t count) {
  int64_t n = k.key.shape()[0], lines = k.key.shape()[1];
  auto column = [&](Value v) { return reshape(v, {n, 1, v.shape()[1]}); };
  auto row = [&](Value v) { return reshape(v, {1, n, v.shape()[1]}); };
  Value earlier = before({row(k.key), row(k.tie)}, {column(k.key), column(k.tie)});
  Value rank = sum(cast(earlier, DType::i32), {1});
  Graph& g = rank.graph();
  Value here = equal(reshape(rank, {1, n, lines}), iota(g, {count, 1, 1}));
  return sum(select(here, iota(g, {1, n, 1}, 1), rank.like(0)), {1});
}

/// Half of x [m, lines].
Value half(Value x, bool second) {
  int64_t m = x.shape()[0];
  return slice_axis(x, 0, second ? m / 2 : 0, second ? m : m / 2);
}

/// Interleaves a and b.
Value interleaved(Value a, Value b) {
  int64_t m = a.shape()[0], lines = a.shape()[1];
  return reshape(concat({reshape(a, {m, 1, lines}), reshape(b, {m, 1, lines})}, 1), {2 * m, lines});
}

/// Arranges runs of length `run` as columns, [2 * run, pairs, lines] as [m, lines]; the second run of each pair is
/// reversed, so that the pair is bitonic.
Value paired(Value x, int64_t run) {
  int64_t m = x.shape()[0], lines = x.shape()[1], pairs = m / (2 * run);
  if (run > 1) {
    Value y = reshape(x, {pairs, 2, run, lines});
    y = concat({slice_axis(y, 1, 0, 1), flip(slice_axis(y, 1, 1, 2), {2})}, 1);
    x = reshape(y, {m, lines});
  }
  if (pairs == 1) return x;
  return reshape(transpose(reshape(x, {pairs, 2 * run, lines}), {1, 0, 2}), {m, lines});
}

/// The positions of the first `count` elements, by a bitonic network. Compares the two halves of the data and
/// interleaves the results, so that the next partners are again in the two halves and every pass has the same shape.
/// Once runs hold `count` elements, only their lower halves are kept.
Value by_network(Keyed k, int64_t count) {
  int64_t n = k.key.shape()[0], m = 1;
  while (m < n) m *= 2;
  k.tie = broadcast(k.tie, k.key.shape());
  k.key = pad(k.key, {0, 0}, {m - n, 0}, {}, highest(k.key.dtype()));
  k.tie = pad(k.tie, {0, 0}, {m - n, 0}, {}, static_cast<double>(2 * n));
  for (int64_t run = 1; run < m;) {
    k = {paired(k.key, run), paired(k.tie, run)};
    bool keep = run < count;
    for (int64_t distance = run; distance >= 1; distance /= 2) {
      Keyed a = {half(k.key, false), half(k.tie, false)}, b = {half(k.key, true), half(k.tie, true)};
      Value swap = before(b, a);
      Keyed low = {select(swap, b.key, a.key), select(swap, b.tie, a.tie)};
      if (!keep && distance == run)
        k = low;
      else
        k = {interleaved(low.key, select(swap, a.key, b.key)), interleaved(low.tie, select(swap, a.tie, b.tie))};
    }
    if (keep)
      run *= 2;
    else
      m /= 2;
  }
  Value tie = slice_axis(k.tie, 0, 0, count), size = tie.like(static_cast<double>(n));
  return select(less(tie, tie.like(0)), tie + size, select(less(tie, size), tie, tie - size));
}

Values decompose(const Call& c) {
  Value x = c.in[0];
  Order o = order_of(x.shape(), c.a);
  Shape y = x.shape();
  y[o.axis] = o.count;
  if (num_elements(y) == 0) return {c.graph.full(x.dtype(), 0, y), c.graph.full(DType::i32, 0, y)};
  int64_t lines = o.outer * o.inner;
  Keyed k =
      keys_of(reshape(transpose(reshape(x, {o.outer, o.size, o.inner}), {1, 0, 2}), {o.size, lines}), o.descending);
  bool few = o.size <= 1024 && o.size * o.size <= (int64_t{1} << 22) / lines;
  Value index = few ? by_rank(k, o.count) : by_network(k, o.count);
  index = reshape(transpose(reshape(index, {o.count, o.outer, o.inner}), {1, 0, 2}), y);
  return {take_along_axis(x, index, c.a.i("axis")), index};
}

Sample sample(Shape shape, int64_t axis, int64_t descending, int64_t count = -1) {
  return {.shapes = {std::move(shape)},
          .attrs = {{"axis", Ints{axis}}, {"descending", Ints{descending}}, {"count", Ints{count}}},
          .distinct = true};
}

}  // namespace

const OpDef sort_op{
    .name = "sort",
    .doc =
        "values and indices (i32) of x in order along `axis`, stable; NaN counts as largest; count >= "
        "0: only the first so many",
    .inputs = {"x"},
    .results = {"values", "indices"},
    .attrs = {{"axis", Ints{-1}}, {"descending", Ints{0}}, {"count", Ints{-1}}},
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp =
        [](const VjpContext& g) {
          Order o = order_of(g.in[0].shape(), g.a);
          return Values{add_along_axis(g.out[1], g.d[0], o.size, static_cast<int64_t>(o.axis))};
        },
    .samples = {sample({3, 7}, -1, 0),
                sample({2, 5, 3}, 1, 1, 3),
                sample({0, 3}, 0, 0),
                {.shapes = {{20}}, .low = -4, .high = 4, .attrs = {{"descending", Ints{1}}}, .dtypes = {DType::i32}},
                sample({1100}, 0, 1, 40)}};

}  // namespace tutti
