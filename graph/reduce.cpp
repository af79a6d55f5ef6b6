#include "graph/reduce.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/ops.h"

namespace tutti {
namespace {

/// The shape with every reduced axis at size 1.
Shape kept(const Shape& shape, const Attrs& a) {
  Shape y = shape;
  for (int64_t axis : normalize_axes(a.ints("axes"), shape.size())) y[static_cast<size_t>(axis)] = 1;
  return y;
}

}  // namespace

Attrs reduce_attrs() { return {{"axes", Ints{}}, {"keep", Ints{0}}}; }

Types infer_reduce(std::span<const TensorType> in, const Attrs& a) {
  const Shape& shape = in[0].shape;
  if (a.i("keep")) return {{in[0].dtype, kept(shape, a)}};
  std::vector<bool> gone(shape.size());
  for (int64_t axis : normalize_axes(a.ints("axes"), shape.size())) gone[static_cast<size_t>(axis)] = true;
  Shape y;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!gone[i]) y.push_back(shape[i]);
  return {{in[0].dtype, y}};
}

void each_reduced(const Tensor& x, const Attrs& a, const std::function<void(size_t, size_t)>& visit) {
  Shape to = broadcast_strides(kept(x.shape(), a), x.shape()), index(x.shape().size());
  int64_t at = 0;
  for (size_t i = 0; i < x.at.size(); ++i) {
    visit(i, static_cast<size_t>(at));
    for (size_t d = index.size(); d-- > 0;) {
      at += to[d];
      if (++index[d] < x.shape()[d]) break;
      at -= to[d] * index[d];
      index[d] = 0;
    }
  }
}

Value unreduce(Value y, const Shape& shape, const Attrs& a) { return broadcast(reshape(y, kept(shape, a)), shape); }

int64_t reduced_count(const Shape& shape, const Attrs& a) {
  int64_t n = 1;
  for (int64_t axis : normalize_axes(a.ints("axes"), shape.size())) n *= shape[static_cast<size_t>(axis)];
  return n;
}

Value divide_by_count(Value x, int64_t n) {
  Value wide = size_of(x.dtype()) < 4 ? cast(x, DType::f32) : x;
  return cast(wide / static_cast<double>(n), x.dtype());
}

void require_elements(const Shape& shape, const Attrs& a) {
  if (num_elements(kept(shape, a)) > 0 && reduced_count(shape, a) == 0)
    throw invalid(fmt::format("{} has no elements along axes {}", to_string(shape), to_string(a.ints("axes"))),
                  "reduce over axes that are not empty");
}

Values share_among_equals(const Pull& g) {
  return rounded_once(
      [](const Pull& p) {
        Value x = p.in[0];
        Shape one = kept(x.shape(), p.a);
        Value wins = equal(x, reshape(p.out[0], one));
        Value count = sum(cast(wins, x.dtype()), p.a.ints("axes"), true);
        return Values{select(wins, reshape(p.d[0], one), x.like(0)) / count};  // NaN equals nothing: 0 / 0
      },
      g);
}

std::vector<Sample> reduce_samples(const Sample& base, bool empty) {
  auto with = [&](Shape shape, Ints axes, int64_t keep) {
    Sample s = base;
    s.shapes = {std::move(shape)};
    s.attrs.set("axes", std::move(axes));
    s.attrs.set("keep", Ints{keep});
    return s;
  };
  std::vector<Sample> list = {with({3, 5}, {}, 0),           with({2, 3, 4}, {1}, 0), with({2, 3, 4}, {-1, 0}, 1),
                              with({4, 3, 2, 5}, {1, 3}, 0), with({7, 1}, {1}, 0),    with({}, {}, 0),
                              with({0, 3}, {1}, 0),          with({33, 130}, {0}, 0), with({5, 1037}, {1}, 0)};
  if (empty) list.insert(list.end(), {with({0, 3}, {0}, 0), with({2, 0}, {}, 1)});
  return list;
}

}  // namespace tutti
