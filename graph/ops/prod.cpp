#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/mul.h"
#include "graph/ops/pad.h"
#include "graph/ops/reshape.h"
#include "graph/ops/slice.h"
#include "graph/ops/transpose.h"
#include "graph/reduce.h"

namespace tutti {

// public
extern TUTTI_API const OpDef prod_op;
/// Product over `axes` (all if empty); `keep` keeps them with size 1. 1 over no elements.
inline Value prod(Value x, Ints axes = {}, bool keep = false) {
  return call(prod_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}
// end of public
namespace {

/// A tree of products over a power of two of rows. Contains no division, so that its derivative is correct for zeros.
Values tree(const Call& c) {
  Value x = c.in[0];
  ReductionGeometry g = reduction_geometry(x.shape(), c.a);
  Ints order = g.axes;
  for (size_t i = 0; i < x.rank(); ++i)
    if (std::find(g.axes.begin(), g.axes.end(), static_cast<int64_t>(i)) == g.axes.end())
      order.push_back(static_cast<int64_t>(i));
  int64_t n = g.count, m = num_elements(g.kept), rows = 1;
  while (rows < n) rows *= 2;
  Value y = reshape(transpose(x, order), {n, m});
  if (rows > n) y = pad(y, {0, 0}, {rows - n, 0}, {}, 1);
  for (; rows > 1; rows /= 2) y = slice(y, {0, 0}, {rows / 2, m}) * slice(y, {rows / 2, 0}, {rows, m});
  return {reshape(y, g.result)};
}

std::vector<Sample> samples() {
  std::vector<Sample> list = reduce_samples({.low = 0.5, .high = 1.5}, true);
  list.push_back({.shapes = {{2, 5}}, .low = -1.5, .high = 1.5, .attrs = {{"axes", Ints{1}}}});
  return list;
}

}  // namespace

const OpDef prod_op{
    .name = "prod",
    .doc =
        "y = product of x over `axes` (all when empty), 1 over no elements; the gradient is right where x holds zeros",
    .inputs = {"x"},
    .attrs = reduce_attrs(),
    .ordered = true,
    .infer = infer_reduce,
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          for (double& y : out[0].at) y = 1;
          each_reduced(in[0], a, [&](size_t from, size_t to) { out[0].at[to] *= in[0].at[from]; });
        },
    .decompose = in_f32<tree>,
    .samples = samples()};

}  // namespace tutti
