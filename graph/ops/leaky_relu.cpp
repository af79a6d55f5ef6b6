#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/less.h"
#include "graph/ops/mul.h"
#include "graph/ops/select.h"

namespace tutti {

// public
extern TUTTI_API const OpDef leaky_relu_op;
/// y = x where x > 0, else alpha x
inline Value leaky_relu(Value x, double alpha = 0.01) { return call(leaky_relu_op, {x}, {{"alpha", Reals{alpha}}}); }
// end of public
namespace {

Values vjp(const VjpContext& g) {
  Value x = g.in[0], d = g.d[0];
  return {select(less(x.like(0), x), d, d * g.a.f("alpha"))};
}

}  // namespace

const OpDef leaky_relu_op{
    .name = "leaky_relu",
    .doc = "y = x where x > 0, else alpha x; the gradient at 0 and at NaN is alpha",
    .inputs = {"x"},
    .attrs = {{"alpha", Reals{0.01}}},
    .expr = [](In x, const Attrs& a) { return Exs{select(x[0] > 0, x[0], x[0] * a.f("alpha"))}; },
    .vjp = in_f32<vjp>,
    .samples = {{.shapes = {{3, 5}}, .low = -2, .high = 2, .kinks = {0}},
                {.shapes = {{17}}, .low = -2, .high = 2, .attrs = {{"alpha", Reals{0.3}}}, .kinks = {0}},
                {.shapes = {{0}}},
                {.shapes = {{65537}}, .low = -2, .high = 2, .kinks = {0}}}};

}  // namespace tutti
