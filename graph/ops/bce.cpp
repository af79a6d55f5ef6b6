#include "graph/in_f32.h"
#include "graph/loss.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/div.h"
#include "graph/ops/log.h"
#include "graph/ops/log1p.h"
#include "graph/ops/maximum.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/sub.h"

namespace tutti {

// public
extern TUTTI_API const OpDef bce_op;
/// The binary cross-entropy of probabilities x against targets in [0, 1], reduced: "mean" over all elements, "sum" or
/// "none". Logarithms are clamped to at least -100. Prefer bce_with_logits, which is accurate near 0 and 1.
inline Value bce(Value x, Value target, const std::string& reduction = "mean") {
  return call(bce_op, {x, target}, {{"reduction", reduction}});
}
// end of public
namespace {

Value held(Value logarithm) { return maximum(logarithm, logarithm.like(-100)); }

Values decompose(const Call& c) {
  Value x = c.in[0], target = c.in[1];
  return {reduce_loss(-(target * held(log(x)) + (1 - target) * held(log1p(-x))), c.a)};
}

/// Not the derivative of the clamped logarithms: as in PyTorch, the gradient is nonzero beyond -100.
Values vjp(const VjpContext& g) {
  Value x = g.in[0], target = g.in[1], d = pull_loss(g), spread = x * (1 - x);
  return {d * ((x - target) / maximum(spread, x.like(1e-12))), d * (held(log1p(-x)) - held(log(x)))};
}

}  // namespace

const OpDef bce_op{.name = "bce",
                   .doc =
                       "y = -target max(log x, -100) - (1 - target) max(log(1 - x), -100), reduced: \"mean\" over all "
                       "elements, \"sum\" or \"none\"",
                   .inputs = {"x", "target"},
                   .attrs = loss_attrs(),
                   .infer = infer_loss,
                   .decompose = in_f32<decompose>,
                   .vjp = in_f32<vjp>,
                   .samples = loss_samples({.low = 0.05, .high = 0.95, .ranges = {{0.05, 0.95}, {0, 1}}})};

}  // namespace tutti
