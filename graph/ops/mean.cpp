#include "graph/op.h"
#include "graph/ops/cast.h"
#include "graph/ops/sum.h"
#include "graph/reduce.h"

namespace tutti {

// public
extern TUTTI_API const OpDef mean_op;
/// Mean over `axes` (all if empty); `keep` keeps them with size 1. Floats only; NaN over no elements.
inline Value mean(Value x, Ints axes = {}, bool keep = false) {
  return call(mean_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}
// end of public

const OpDef mean_op{
    .name = "mean",
    .doc =
        "y = mean of x over `axes` (all when empty), summed before it is divided; keep = 1 leaves them "
        "with size 1; floats only",
    .inputs = {"x"},
    .attrs = reduce_attrs(),
    .infer = infer_float_reduce,
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          each_reduced(in[0], a, [&](size_t from, size_t to) { out[0].at[to] += in[0].at[from]; });
          auto n = static_cast<double>(reduction_geometry(in[0].shape(), a).count);
          for (double& y : out[0].at) y /= n;
        },
    .decompose =
        [](const Call& c) {  // a sum of many f16 elements may overflow although the mean does not
          Value x = c.in[0], wide = size_of(x.dtype()) < 4 ? cast(x, DType::f32) : x;
          Value total = sum(wide, c.a.ints("axes"), c.a.i("keep") != 0);
          return Values{cast(divide_by_count(total, reduction_geometry(x.shape(), c.a).count), x.dtype())};
        },
    .vjp =
        [](const VjpContext& g) {
          const Shape& shape = g.in[0].shape();
          return Values{unreduce(divide_by_count(g.d[0], reduction_geometry(shape, g.a).count), shape, g.a)};
        },
    .samples = reduce_samples({})};

}  // namespace tutti
