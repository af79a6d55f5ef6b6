#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef sqrt_op;
/// y = sqrt(x)
inline Value sqrt(Value x) { return call(sqrt_op, {x}); }
// end of public

const OpDef sqrt_op{
    .name = "sqrt",
    .doc = "y = sqrt(x)",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{sqrt(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = 0.1, .high = 4}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = 0.1, .high = 4}}};

}  // namespace tutti
