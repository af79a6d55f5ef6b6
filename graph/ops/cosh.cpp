#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/mul.h"
#include "graph/ops/sinh.h"

namespace tutti {

// public
extern TUTTI_API const OpDef cosh_op;
/// y = (e^x + e^-x) / 2; in f32 within 4 ulp
inline Value cosh(Value x) { return call(cosh_op, {x}); }
// end of public
namespace {

Values vjp(const VjpContext& g) { return {g.d[0] * sinh(g.in[0])}; }

}  // namespace

const OpDef cosh_op{
    .name = "cosh",
    .doc = "y = (e^x + e^-x) / 2",
    .inputs = {"x"},
    .expr =
        [](In x, const Attrs&) {
          Ex h = exp(abs(x[0]) * 0.5);  // e^|x| would overflow before the result does
          return Exs{h * 0.5 * h + 0.5 / h / h};
        },
    .vjp = in_f32<vjp>,
    .samples = {
        {.shapes = {{3, 5}}, .low = -3, .high = 3}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -30, .high = 30}}};

}  // namespace tutti
