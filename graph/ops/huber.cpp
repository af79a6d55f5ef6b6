#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/loss.h"
#include "graph/op.h"
#include "graph/ops/abs.h"
#include "graph/ops/clamp.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"

namespace tutti {

// public
extern TUTTI_API const OpDef huber_op;
/// r^2 / 2 where |r| <= delta, else delta (|r| - delta / 2), for r = x - target; reduced: "mean" over all elements,
/// "sum" or "none".
inline Value huber(Value x, Value target, double delta = 1, const std::string& reduction = "mean") {
  return call(huber_op, {x, target}, {{"delta", Reals{delta}}, {"reduction", reduction}});
}
// end of public
namespace {

Values decompose(const Call& c) {
  double delta = c.a.f("delta");
  Value r = c.in[0] - c.in[1], size = abs(r);
  return {reduce_loss(select(less_equal(size, size.like(delta)), r * r * 0.5, (size - delta / 2) * delta), c.a)};
}

/// The residual clamped to [-delta, delta]; unlike the decomposition's gradient, correct for infinite residuals.
Values vjp(const VjpContext& g) {
  double delta = g.a.f("delta");
  Value dx = pull_loss(g) * clamp(g.in[0] - g.in[1], -delta, delta);
  return {dx, -dx};
}

}  // namespace

const OpDef huber_op{
    .name = "huber",
    .doc =
        "y = r^2 / 2 where |r| <= delta, else delta (|r| - delta / 2), for r = x - target; reduced: \"mean\" over all "
        "elements, \"sum\" or \"none\"",
    .inputs = {"x", "target"},
    .attrs = loss_attrs({{"delta", Reals{1}}}),
    .infer =
        [](std::span<const TensorType> in, const Attrs& a) {
          if (!(a.f("delta") > 0)) throw invalid(fmt::format("delta is {}, but must be above 0", a.f("delta")));
          return infer_loss(in, a);
        },
    .decompose = in_f32<decompose>,
    .vjp = in_f32<vjp>,
    .samples = loss_samples({.low = -2, .high = 2, .attrs = {{"delta", Reals{0.7}}}})};

}  // namespace tutti
