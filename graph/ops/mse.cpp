#include "graph/in_f32.h"
#include "graph/loss.h"
#include "graph/op.h"
#include "graph/ops/mul.h"
#include "graph/ops/sub.h"

namespace tutti {

// public
extern TUTTI_API const OpDef mse_op;
/// The squared error (x - target)^2, reduced: "mean" over all elements, "sum" or "none".
inline Value mse(Value x, Value target, const std::string& reduction = "mean") {
  return call(mse_op, {x, target}, {{"reduction", reduction}});
}
// end of public
namespace {

Values decompose(const Call& c) {
  Value r = c.in[0] - c.in[1];
  return {reduce_loss(r * r, c.a)};
}

}  // namespace

const OpDef mse_op{.name = "mse",
                   .doc = "y = (x - target)^2, reduced: \"mean\" over all elements, \"sum\" or \"none\"",
                   .inputs = {"x", "target"},
                   .attrs = loss_attrs(),
                   .infer = infer_loss,
                   .decompose = in_f32<decompose>,
                   .samples = loss_samples({.low = -2, .high = 2})};

}  // namespace tutti
