#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef sin_op;
/// y = sin x
inline Value sin(Value x) { return call(sin_op, {x}); }
// end of public

const OpDef sin_op{
    .name = "sin",
    .doc = "y = sin x",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{sin(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = -3, .high = 3}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -20, .high = 20}}};

}  // namespace tutti
