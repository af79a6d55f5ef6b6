#include <algorithm>
#include <cmath>

#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/exp.h"
#include "graph/ops/log.h"
#include "graph/ops/max.h"
#include "graph/ops/mul.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"
#include "graph/softmax.h"

namespace tutti {

// public
extern TUTTI_API const OpDef log_softmax_op;
/// y = x - log(sum of exp(x) over `axis`), computed from x minus its maximum
inline Value log_softmax(Value x, int64_t axis = -1) { return call(log_softmax_op, {x}, {{"axis", Ints{axis}}}); }
// end of public
namespace {

Values decompose(const Call& c) {
  if (num_elements(c.in[0].shape()) == 0) return {exp(c.in[0])};  // max over no elements is an error
  Ints axis = {c.a.i("axis")};
  Value x = c.in[0] - max(c.in[0], axis, true);
  return {x - log(sum(exp(x), axis, true))};
}

Values vjp(const VjpContext& g) {
  int64_t axis = g.a.i("axis");
  Value y = log_softmax(g.in[0], axis), d = g.d[0];
  return {d - exp(y) * sum(d, {axis}, true)};
}

}  // namespace

const OpDef log_softmax_op{.name = "log_softmax",
                           .doc = "y = x - log(sum of exp(x) over `axis`), computed from x minus its maximum",
                           .inputs = {"x"},
                           .attrs = {{"axis", Ints{-1}}},
                           .infer = infer_softmax,
                           .reference =
                               [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
                                 const double* x = in[0].at.data();
                                 double* y = out[0].at.data();
                                 each_line(in[0].shape(), a.i("axis"), [&](size_t first, size_t step, size_t size) {
                                   double high = x[first], total = 0;
                                   for (size_t i = 0; i < size; ++i) high = std::max(high, x[first + i * step]);
                                   for (size_t i = 0; i < size; ++i) total += std::exp(x[first + i * step] - high);
                                   double log_total = std::log(total);
                                   for (size_t i = 0; i < size; ++i)
                                     y[first + i * step] = x[first + i * step] - high - log_total;
                                 });
                               },
                           .decompose = in_f32<decompose>,
                           .vjp = in_f32<vjp>,
                           .samples = softmax_samples()};

}  // namespace tutti
