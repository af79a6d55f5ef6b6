#include "graph/in_f32.h"
#include "graph/loss.h"
#include "graph/op.h"
#include "graph/ops/abs.h"
#include "graph/ops/add.h"
#include "graph/ops/exp.h"
#include "graph/ops/log1p.h"
#include "graph/ops/maximum.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/sigmoid.h"
#include "graph/ops/sub.h"

namespace tutti {

// public
extern TUTTI_API const OpDef bce_with_logits_op;
/// The binary cross-entropy of sigmoid(x) against targets in [0, 1], reduced: "mean" over all elements, "sum" or
/// "none".
inline Value bce_with_logits(Value x, Value target, const std::string& reduction = "mean") {
  return call(bce_with_logits_op, {x, target}, {{"reduction", reduction}});
}
// end of public
namespace {

Values decompose(const Call& c) {
  Value x = c.in[0], target = c.in[1];
  return {reduce_loss((1 - target) * x + maximum(-x, x.like(0)) + log1p(exp(-abs(x))), c.a)};
}

Values vjp(const VjpContext& g) {
  Value x = g.in[0], d = pull_loss(g);
  return {d * (sigmoid(x) - g.in[1]), -(d * x)};
}

}  // namespace

const OpDef bce_with_logits_op{
    .name = "bce_with_logits",
    .doc =
        "y = -target log(sigmoid(x)) - (1 - target) log(1 - sigmoid(x)) = (1 - target) x + max(-x, 0) + "
        "log1p(exp(-|x|)), "
        "reduced: \"mean\" over all elements, \"sum\" or \"none\"",
    .inputs = {"x", "target"},
    .attrs = loss_attrs(),
    .infer = infer_loss,
    .decompose = in_f32<decompose>,
    .vjp = in_f32<vjp>,
    .samples = loss_samples({.low = -4, .high = 4, .ranges = {{-4, 4}, {0, 1}}})};

}  // namespace tutti
