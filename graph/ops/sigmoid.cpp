#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/mul.h"
#include "graph/ops/sub.h"

namespace tutti {

// public
extern TUTTI_API const OpDef sigmoid_op;
/// y = 1 / (1 + e^-x)
inline Value sigmoid(Value x) { return call(sigmoid_op, {x}); }
// end of public
namespace {

Values vjp(const VjpContext& g) {
  Value y = sigmoid(g.in[0]);
  return {g.d[0] * y * (1 - y)};
}

}  // namespace

const OpDef sigmoid_op{.name = "sigmoid",
                       .doc = "y = 1 / (1 + e^-x)",
                       .inputs = {"x"},
                       .expr = [](In x, const Attrs&) { return Exs{1 / (1 + exp(-x[0]))}; },
                       .vjp = in_f32<vjp>,
                       .samples = {{.shapes = {{3, 5}}, .low = -6, .high = 6},
                                   {.shapes = {{9}}, .low = -200, .high = 200},
                                   {.shapes = {{0}}},
                                   {.shapes = {{65537}}, .low = -6, .high = 6}}};

}  // namespace tutti
