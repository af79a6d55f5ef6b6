#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/mul.h"
#include "graph/ops/sigmoid.h"
#include "graph/ops/sub.h"

namespace tutti {

// public
extern TUTTI_API const OpDef silu_op;
/// y = x / (1 + e^-x), also called swish
inline Value silu(Value x) { return call(silu_op, {x}); }
// end of public
namespace {

/// s + x s (1 - s), s = sigmoid(x): finite even if e^-x overflows.
Values vjp(const VjpContext& g) {
  Value x = g.in[0], s = sigmoid(x);
  return {g.d[0] * (s + silu(x) * (1 - s))};
}

}  // namespace

const OpDef silu_op{.name = "silu",
                    .doc = "y = x / (1 + e^-x)",
                    .inputs = {"x"},
                    .expr = [](In x, const Attrs&) { return Exs{x[0] / (1 + exp(-x[0]))}; },
                    .vjp = in_f32<vjp>,
                    .samples = {{.shapes = {{3, 5}}, .low = -4, .high = 4},
                                {.shapes = {{9}}, .low = -200, .high = 200},
                                {.shapes = {{0}}},
                                {.shapes = {{65537}}, .low = -8, .high = 8}}};

}  // namespace tutti
