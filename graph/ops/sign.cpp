#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef sign_op;
/// y = -1, 0 or 1, the sign of x; the gradient is 0
inline Value sign(Value x) { return call(sign_op, {x}); }
// end of public

const OpDef sign_op{
    .name = "sign",
    .doc = "y = -1, 0 or 1, the sign of x; the gradient is 0",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{select(0 < x[0], 1, select(x[0] < 0, -1, x[0].like(0)))}; },
    .samples = {{.shapes = {{3, 5}}, .low = -3, .high = 3, .kinks = {0}},
                {.shapes = {{0}}},
                {.shapes = {{65537}}, .low = -3, .high = 3, .kinks = {0}}}};

}  // namespace tutti
