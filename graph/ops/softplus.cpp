#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/mul.h"
#include "graph/ops/sigmoid.h"

namespace tutti {

// public
extern TUTTI_API const OpDef softplus_op;
/// y = ln(1 + e^x), without overflow
inline Value softplus(Value x) { return call(softplus_op, {x}); }
// end of public
namespace {

Values vjp(const VjpContext& g) { return {g.d[0] * sigmoid(g.in[0])}; }

}  // namespace

const OpDef softplus_op{.name = "softplus",
                        .doc = "y = ln(1 + e^x) = max(x, 0) + log1p(e^-|x|)",
                        .inputs = {"x"},
                        .expr = [](In x, const Attrs&) { return Exs{max(x[0], 0) + log1p(exp(-abs(x[0])))}; },
                        .vjp = in_f32<vjp>,
                        .samples = {{.shapes = {{3, 5}}, .low = -4, .high = 4},
                                    {.shapes = {{9}}, .low = -200, .high = 200},
                                    {.shapes = {{0}}},
                                    {.shapes = {{65537}}, .low = -8, .high = 8}}};

}  // namespace tutti
