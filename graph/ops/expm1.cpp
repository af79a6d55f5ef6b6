#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef expm1_op;
/// y = e^x - 1, accurate near 0
inline Value expm1(Value x) { return call(expm1_op, {x}); }
// end of public

const OpDef expm1_op{
    .name = "expm1",
    .doc = "y = e^x - 1, accurate near 0",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{expm1(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = -2, .high = 2}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -2, .high = 2}}};

}  // namespace tutti
