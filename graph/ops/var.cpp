#include <algorithm>

#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/div.h"
#include "graph/ops/mean.h"
#include "graph/ops/mul.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"
#include "graph/reduce.h"

namespace tutti {

// public
extern TUTTI_API const OpDef var_op;
/// The variance over `axes` (all if empty): the sum of squares of x minus its mean, divided by the number of elements
/// minus `correction`; NaN if both are 0.
inline Value var(Value x, Ints axes = {}, bool keep = false, int64_t correction = 1) {
  return call(var_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}, {"correction", Ints{correction}}});
}
// end of public
namespace {

/// Degrees of freedom.
double freedom(const Shape& x, const Attrs& a) {
  return static_cast<double>(reduction_geometry(x, a).count - a.i("correction"));
}

/// The divisor of the sum of squares. The gradient uses freedom() even if negative, as PyTorch does.
double divisor(const Shape& x, const Attrs& a) { return std::max(freedom(x, a), 0.0); }

Values decompose(const Call& c) {
  Value x = c.in[0];
  const Ints& axes = c.a.ints("axes");
  Value apart = x - mean(x, axes, true);
  return {sum(apart * apart, axes, c.a.i("keep") != 0) / divisor(x.shape(), c.a)};
}

Values vjp(const VjpContext& g) {
  Value x = g.in[0];
  Value each = unreduce(g.d[0] * 2 / freedom(x.shape(), g.a), x.shape(), g.a);
  return {each * (x - mean(x, g.a.ints("axes"), true))};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  std::vector<double> mean(out[0].at.size());
  each_reduced(in[0], a, [&](size_t from, size_t to) { mean[to] += in[0].at[from]; });
  for (double& m : mean) m /= static_cast<double>(reduction_geometry(in[0].shape(), a).count);
  each_reduced(in[0], a, [&](size_t from, size_t to) {
    double apart = in[0].at[from] - mean[to];
    out[0].at[to] += apart * apart;
  });
  for (double& y : out[0].at) y /= divisor(in[0].shape(), a);
}

Sample sample(Shape shape, Ints axes, int64_t keep, int64_t correction = 1) {
  return {.shapes = {std::move(shape)},
          .attrs = {{"axes", std::move(axes)}, {"keep", Ints{keep}}, {"correction", Ints{correction}}}};
}

}  // namespace

const OpDef var_op{
    .name = "var",
    .doc = "y = sum over `axes` (all when empty) of (x - mean(x))^2, divided by the number of elements - correction",
    .inputs = {"x"},
    .attrs = {{"axes", Ints{}}, {"keep", Ints{0}}, {"correction", Ints{1}}},
    .infer = infer_float_reduce,
    .reference = reference,
    .decompose = in_f32<decompose>,
    .vjp = in_f32<vjp>,
    .samples = {sample({3, 5}, {}, 0), sample({2, 3, 4}, {-1, 0}, 1, 0), sample({3, 2}, {1}, 0, 0),
                sample({0, 3}, {1}, 0), sample({5, 130}, {1}, 0)}};

}  // namespace tutti
