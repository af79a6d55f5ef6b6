#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef cos_op;
/// y = cos x
inline Value cos(Value x) { return call(cos_op, {x}); }
// end of public

const OpDef cos_op{
    .name = "cos",
    .doc = "y = cos x",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{cos(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = -3, .high = 3}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -20, .high = 20}}};

}  // namespace tutti
