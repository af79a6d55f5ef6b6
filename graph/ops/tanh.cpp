#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef tanh_op;
/// y = tanh x
inline Value tanh(Value x) { return call(tanh_op, {x}); }
// end of public

const OpDef tanh_op{
    .name = "tanh",
    .doc = "y = tanh x",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{tanh(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = -2, .high = 2}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -12, .high = 12}}};

}  // namespace tutti
