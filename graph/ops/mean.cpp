#include "core/base/status.h"
#include "graph/ops.h"
#include "graph/reduce.h"
//: /// Mean over `axes` (all when empty); `keep` leaves them with size 1. Floats only; NaN over no elements.
//: inline Value mean(Value x, Ints axes = {}, bool keep = false) { return call(mean_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}}); }

namespace tutti {

const OpDef mean_op{
    .name = "mean",
    .doc = "y = mean of x over `axes` (all when empty); keep = 1 leaves them with size 1; floats only",
    .inputs = {"x"},
    .attrs = reduce_attrs(),
    .infer =
        [](std::span<const TensorType> in, const Attrs& a) {
          if (!is_float(in[0].dtype)) throw invalid("the mean needs a float dtype", "cast x to f32");
          return infer_reduce(in, a);
        },
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          each_reduced(in[0], a, [&](size_t from, size_t to) { out[0].at[to] += in[0].at[from]; });
          auto n = static_cast<double>(reduced_count(in[0].shape(), a));
          for (double& y : out[0].at) y /= n;
        },
    .decompose =
        [](const Call& c) {
          auto n = static_cast<double>(reduced_count(c.in[0].shape(), c.a));
          return Values{sum(c.in[0], c.a.ints("axes"), c.a.i("keep") != 0) / n};
        },
    .vjp =
        [](const Pull& g) {
          const Shape& shape = g.in[0].shape();
          return Values{unreduce(g.d[0] / static_cast<double>(reduced_count(shape, g.a)), shape, g.a)};
        },
    .samples = reduce_samples({})};

}  // namespace tutti
