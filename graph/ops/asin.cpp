#include "graph/angle.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/mul.h"
#include "graph/ops/rsqrt.h"
#include "graph/ops/sub.h"

namespace tutti {

// public
extern TUTTI_API const OpDef asin_op;
/// y = arcsin x, in [-pi/2, pi/2]; NaN where |x| > 1; in f32 within 3 ulp
inline Value asin(Value x) { return call(asin_op, {x}); }
// end of public
namespace {

Values vjp(const VjpContext& g) { return {g.d[0] * rsqrt((1 - g.in[0]) * (1 + g.in[0]))}; }

}  // namespace

const OpDef asin_op{.name = "asin",
                    .doc = "y = arcsin x, in [-pi/2, pi/2]; NaN where |x| > 1",
                    .inputs = {"x"},
                    .expr =
                        [](In in, const Attrs&) {
                          Ex x = in[0];
                          return Exs{odd(x, angle_of(abs(x), sqrt((1 - x) * (1 + x))))};
                        },
                    .vjp = in_f32<vjp>,
                    .samples = {{.shapes = {{3, 5}}, .low = -0.9, .high = 0.9},
                                {.shapes = {{0}}},
                                {.shapes = {{65537}}, .low = -0.99, .high = 0.99}}};

}  // namespace tutti
