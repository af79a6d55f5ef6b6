#include <algorithm>
#include <cmath>

#include "core/geometry/copy.h"
#include "graph/op.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/pad.h"
#include "graph/ops/select.h"
#include "graph/ops/slice.h"

namespace tutti {

// public
extern TUTTI_API const OpDef concat_op;
/// Joins tensors along `axis`; their other dimensions and dtype must agree. At least one tensor.
inline Value concat(const Values& x, int64_t axis) { return call(concat_op, x, {{"axis", Ints{axis}}}); }
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) { return {{in[0].dtype, concat_geometry(in, a).result}}; }

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  Types types;
  for (const Tensor& x : in) types.push_back(x.type);
  ConcatGeometry g = concat_geometry(types, a);
  for (size_t k = 0; k < in.size(); ++k)
    each_element(g.copies[k], [&](size_t from, size_t to) { out[0].at[to] = in[k].at[from]; });
}

/// For devices with a limit on buffers per kernel: joins groups of about sqrt(n) inputs first, so that two levels
/// suffice; joins two inputs by padding.
Values decompose(const Call& c) {
  size_t n = c.in.size();
  int64_t axis = c.a.i("axis");
  if (n == 1) return {c.in[0]};
  if (n > 2) {
    auto group = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(n))));
    Values parts;
    for (size_t k = 0; k < n; k += group) {
      std::span<const Value> some = c.in.subspan(k, std::min(group, n - k));
      parts.push_back(some.size() == 1 ? some[0] : concat({some.begin(), some.end()}, axis));
    }
    return {concat(parts, axis)};
  }
  Value a = c.in[0], b = c.in[1];
  auto at = static_cast<size_t>(normalize_axis(axis, a.rank()));
  Ints none(a.rank()), behind = none, before = none, line(a.rank(), 1);
  behind[at] = b.shape()[at];
  before[at] = a.shape()[at];
  line[at] = before[at] + behind[at];
  Value place = iota(c.graph, line, static_cast<int64_t>(at));
  return {select(less(place, place.like(static_cast<double>(before[at]))), pad(a, none, behind), pad(b, before, none))};
}

Values vjp(const VjpContext& g) {
  const Shape& y = g.out[0].shape();
  auto axis = static_cast<size_t>(normalize_axis(g.a.i("axis"), y.size()));
  Values back;
  Ints starts(y.size()), stops = y;
  for (size_t k = 0; k < g.in.size(); ++k) {
    stops[axis] = starts[axis] + g.in[k].shape()[axis];
    back.push_back(g.wants[k] ? slice(g.d[0], starts, stops) : Value{});
    starts[axis] = stops[axis];
  }
  return back;
}

}  // namespace

const OpDef concat_op{
    .name = "concat",
    .doc = "y = the inputs one after the other along `axis`; the other dimensions and the dtype agree",
    .inputs = {"x..."},
    .attrs = {{"axis", Ints{0}}},
    .ordered = true,
    .moves = true,
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp = vjp,
    .samples = {{.shapes = {{2, 3}, {4, 3}}},
                {.shapes = {{2, 3, 2}, {2, 1, 2}, {2, 0, 2}, {2, 4, 2}}, .attrs = {{"axis", Ints{1}}}},
                {.shapes = {{3, 2}, {3, 5}}, .attrs = {{"axis", Ints{-1}}}},
                {.shapes = {{7}}},
                {.shapes = {{3}, {2}}, .low = -9, .high = 9, .dtypes = {DType::i32, DType::i32}},
                {.shapes = {{65, 33}, {65, 70}}, .attrs = {{"axis", Ints{1}}}},
                {.shapes = std::vector<Shape>(40, {2, 3}), .attrs = {{"axis", Ints{1}}}}}};

}  // namespace tutti
