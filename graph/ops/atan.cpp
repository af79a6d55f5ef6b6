#include "graph/angle.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/div.h"
#include "graph/ops/mul.h"

namespace tutti {

// public
extern TUTTI_API const OpDef atan_op;
/// y = arctan x, in [-pi/2, pi/2]; in f32 within 2.5 ulp
inline Value atan(Value x) { return call(atan_op, {x}); }
// end of public
namespace {

Values vjp(const VjpContext& g) { return {g.d[0] / (1 + g.in[0] * g.in[0])}; }

}  // namespace

const OpDef atan_op{
    .name = "atan",
    .doc = "y = arctan x, in [-pi/2, pi/2]",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{odd(x[0], angle_of(abs(x[0]), x[0].like(1)))}; },
    .vjp = in_f32<vjp>,
    .samples = {
        {.shapes = {{3, 5}}, .low = -3, .high = 3}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -40, .high = 40}}};

}  // namespace tutti
