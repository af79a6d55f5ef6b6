#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/exp.h"
#include "graph/ops/less.h"
#include "graph/ops/minimum.h"
#include "graph/ops/mul.h"
#include "graph/ops/select.h"

namespace tutti {

// public
extern TUTTI_API const OpDef elu_op;
/// y = x where x > 0, else alpha (e^x - 1); alpha >= 0
inline Value elu(Value x, double alpha = 1) { return call(elu_op, {x}, {{"alpha", Reals{alpha}}}); }
// end of public
namespace {

Values vjp(const VjpContext& g) {
  Value x = g.in[0], d = g.d[0];
  Value below = minimum(x, x.like(0));  // else the branch not taken would overflow, and its gradient be NaN
  return {select(less(x.like(0), x), d, d * (exp(below) * g.a.f("alpha")))};
}

}  // namespace

const OpDef elu_op{.name = "elu",
                   .doc = "y = x where x > 0, else alpha (e^x - 1); alpha >= 0",
                   .inputs = {"x"},
                   .attrs = {{"alpha", Reals{1.0}}},
                   .expr =
                       [](In x, const Attrs& a) {
                         double alpha = a.f("alpha");
                         if (!(alpha >= 0)) throw invalid(fmt::format("alpha is {}, must be >= 0", alpha));
                         return Exs{select(x[0] > 0, x[0], alpha * expm1(x[0]))};
                       },
                   .vjp = in_f32<vjp>,
                   .samples = {{.shapes = {{3, 5}}, .low = -3, .high = 3, .kinks = {0}},
                               {.shapes = {{17}}, .low = -3, .high = 3, .attrs = {{"alpha", Reals{0.4}}}, .kinks = {0}},
                               {.shapes = {{9}}, .low = -100, .high = 100, .kinks = {0}},
                               {.shapes = {{0}}},
                               {.shapes = {{65537}}, .low = -3, .high = 3, .kinks = {0}}}};

}  // namespace tutti
