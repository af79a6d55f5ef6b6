#include "graph/loss.h"
#include "graph/ops.h"
//: /// The binary cross-entropy of sigmoid(x) against targets in [0, 1], reduced: "mean" over all elements, "sum" or "none".
//: inline Value bce_with_logits(Value x, Value target, const std::string& reduction = "mean") { return call(bce_with_logits_op, {x, target}, {{"reduction", reduction}}); }

namespace tutti {

const OpDef bce_with_logits_op{
    .name = "bce_with_logits",
    .doc =
        "y = -target log(sigmoid(x)) - (1 - target) log(1 - sigmoid(x)) = max(x, 0) - x target + log1p(exp(-|x|)), "
        "reduced: \"mean\" over all elements, \"sum\" or \"none\"",
    .inputs = {"x", "target"},
    .attrs = loss_attrs(),
    .infer = infer_loss,
    .decompose =
        [](const Call& c) {
          Value x = c.in[0];
          return Values{reduce_loss(maximum(x, x.like(0)) - x * c.in[1] + log1p(exp(-abs(x))), c.a)};
        },
    .samples = loss_samples({.low = -4, .high = 4, .ranges = {{-4, 4}, {0, 1}}})};

}  // namespace tutti
