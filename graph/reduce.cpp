#include "graph/reduce.h"

#include "core/base/status.h"
#include "core/geometry/copy.h"
#include "graph/in_f32.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/div.h"
#include "graph/ops/equal.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sum.h"

namespace tutti {

Attrs reduce_attrs() { return {{"axes", Ints{}}, {"keep", Ints{0}}}; }

Types infer_reduce(std::span<const TensorType> in, const Attrs& a) {
  return {{in[0].dtype, reduction_geometry(in[0].shape, a).result}};
}

Types infer_float_reduce(std::span<const TensorType> in, const Attrs& a) {
  if (!is_float(in[0].dtype)) throw invalid("x must have a float dtype", "cast it to f32");
  return infer_reduce(in, a);
}

Types infer_choice(std::span<const TensorType> in, const Attrs& a) {
  return {{in[0].dtype, reduction_geometry(in[0].shape, a, true).result}};
}

void each_reduced(const Tensor& x, const Attrs& a, const std::function<void(size_t, size_t)>& visit) {
  const Shape& s = x.shape();
  each_element({s, strides_of(s), broadcast_strides(reduction_geometry(s, a).kept, s)}, visit);
}

Value unreduce(Value y, const Shape& shape, const Attrs& a) {
  return broadcast(reshape(y, reduction_geometry(shape, a).kept), shape);
}

Value divide_by_count(Value x, int64_t n) {
  Value wide = size_of(x.dtype()) < 4 ? cast(x, DType::f32) : x;
  return cast(wide / static_cast<double>(n), x.dtype());
}

Values share_among_equals(const VjpContext& g) {
  return rounded_once(
      [](const VjpContext& p) {
        Value x = p.in[0];
        Shape one = reduction_geometry(x.shape(), p.a).kept;
        Value wins = equal(x, reshape(p.out[0], one));
        Value count = sum(cast(wins, x.dtype()), p.a.ints("axes"), true);
        return Values{select(wins, reshape(p.d[0], one), x.like(0)) / count};  // no element equals NaN: 0 / 0
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
                              with({4, 3, 2, 5}, {1, 3}, 0), with({7, 1}, {1}, 0),    with({}, {-1}, 0),
                              with({0, 3}, {1}, 0),          with({33, 130}, {0}, 0), with({5, 1037}, {1}, 0)};
  if (empty) list.insert(list.end(), {with({0, 3}, {0}, 0), with({2, 0}, {}, 1)});
  return list;
}

}  // namespace tutti
