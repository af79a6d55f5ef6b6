#include <cmath>
#include <limits>

#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/abs.h"
#include "graph/ops/add.h"
#include "graph/ops/div.h"
#include "graph/ops/equal.h"
#include "graph/ops/exp.h"
#include "graph/ops/log.h"
#include "graph/ops/max.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"
#include "graph/reduce.h"

namespace tutti {

// public
extern TUTTI_API const OpDef logsumexp_op;
/// y = log(sum of exp(x) over `axes`, all if empty), computed from x minus its maximum; -inf over no elements
inline Value logsumexp(Value x, Ints axes = {}, bool keep = false) {
  return call(logsumexp_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}
// end of public
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// exp(x - high) and its sum; the reduced axes are kept.
struct Shifted {
  Value high, exps, total;
};

Shifted shifted(Value x, const Attrs& a) {
  const Ints& axes = a.ints("axes");
  if (reduction_geometry(x.shape(), a).count == 0 || num_elements(x.shape()) == 0) {
    Value e = exp(x);
    return {x.like(0), e, sum(e, axes, true)};
  }
  Value high = max(x, axes, true);
  high = select(equal(abs(high), x.like(infinity)), x.like(0), high);  // inf - inf would be NaN
  Value e = exp(x - high);
  return {high, e, sum(e, axes, true)};
}

Values decompose(const Call& c) {
  Shifted s = shifted(c.in[0], c.a);
  return {reshape(log(s.total) + s.high, reduction_geometry(c.in[0].shape(), c.a).result)};
}

Values vjp(const VjpContext& g) {
  Shifted s = shifted(g.in[0], g.a);
  return {reshape(g.d[0], s.total.shape()) * (s.exps / s.total)};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  std::vector<double> high(out[0].at.size(), -infinity);
  each_reduced(in[0], a, [&](size_t from, size_t to) {
    double x = in[0].at[from];
    if (x > high[to]) high[to] = x;
  });
  for (double& h : high)
    if (std::isinf(h)) h = 0;
  each_reduced(in[0], a, [&](size_t from, size_t to) { out[0].at[to] += std::exp(in[0].at[from] - high[to]); });
  for (size_t i = 0; i < high.size(); ++i) out[0].at[i] = std::log(out[0].at[i]) + high[i];
}

Sample sample(Shape shape, Ints axes, int64_t keep) {
  return {
      .shapes = {std::move(shape)}, .low = -3, .high = 3, .attrs = {{"axes", std::move(axes)}, {"keep", Ints{keep}}}};
}

}  // namespace

const OpDef logsumexp_op{
    .name = "logsumexp",
    .doc = "y = log(sum of exp(x) over `axes` (all when empty)), computed from x minus its maximum",
    .inputs = {"x"},
    .attrs = reduce_attrs(),
    .infer = infer_float_reduce,
    .reference = reference,
    .decompose = in_f32<decompose>,
    .vjp = in_f32<vjp>,
    .samples = {sample({3, 5}, {}, 0), sample({2, 3, 4}, {-1, 0}, 1), sample({7, 1}, {1}, 0), sample({2, 0}, {1}, 0),
                sample({5, 130}, {1}, 0)}};

}  // namespace tutti
