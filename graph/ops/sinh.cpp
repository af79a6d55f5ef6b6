#include "graph/angle.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/cosh.h"
#include "graph/ops/mul.h"

namespace tutti {

// public
extern TUTTI_API const OpDef sinh_op;
/// y = (e^x - e^-x) / 2, accurate near 0; in f32 within 4 ulp
inline Value sinh(Value x) { return call(sinh_op, {x}); }
// end of public
namespace {

Values vjp(const VjpContext& g) { return {g.d[0] * cosh(g.in[0])}; }

}  // namespace

const OpDef sinh_op{
    .name = "sinh",
    .doc = "y = (e^x - e^-x) / 2, accurate near 0",
    .inputs = {"x"},
    .expr =
        [](In x, const Attrs&) {
          Ex t = abs(x[0]), u = expm1(t), h = exp(t * 0.5);  // e^t would overflow before the result does
          return Exs{odd(x[0], select(t < 20, (u + u / (u + 1)) * 0.5, h * 0.5 * h))};
        },
    .vjp = in_f32<vjp>,
    .samples = {
        {.shapes = {{3, 5}}, .low = -3, .high = 3}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -30, .high = 30}}};

}  // namespace tutti
