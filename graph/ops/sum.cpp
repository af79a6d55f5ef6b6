#include "graph/op.h"
#include "graph/ops/reshape.h"
#include "graph/reduce.h"

namespace tutti {

// public
extern TUTTI_API const OpDef sum_op;
/// Sum over `axes` (all if empty); `keep` keeps them with size 1.
inline Value sum(Value x, Ints axes = {}, bool keep = false) {
  return call(sum_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}
/// Sums over broadcast dimensions so that the result has `shape`: the adjoint of broadcast.
TUTTI_API Value sum_to(Value x, const Shape& shape);
// end of public

const OpDef sum_op{.name = "sum",
                   .doc = "y = sum of x over `axes` (all when empty); keep = 1 leaves them with size 1",
                   .inputs = {"x"},
                   .attrs = reduce_attrs(),
                   .ordered = true,
                   .infer = infer_reduce,
                   .reference =
                       [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
                         each_reduced(in[0], a, [&](size_t from, size_t to) { out[0].at[to] += in[0].at[from]; });
                       },
                   .vjp = [](const VjpContext& g) { return Values{unreduce(g.d[0], g.in[0].shape(), g.a)}; },
                   .samples = reduce_samples({}, true)};

Value sum_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Ints axes;
  size_t extra = x.rank() - shape.size();
  for (size_t i = 0; i < x.rank(); ++i)
    if (i < extra || (shape[i - extra] == 1 && x.shape()[i] != 1)) axes.push_back(static_cast<int64_t>(i));
  return reshape(axes.empty() ? x : sum(x, axes), shape);
}

}  // namespace tutti
