#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef exp_op;
/// y = e^x
inline Value exp(Value x) { return call(exp_op, {x}); }
// end of public

const OpDef exp_op{
    .name = "exp",
    .doc = "y = e^x",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{exp(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = -3, .high = 3}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -30, .high = 30}}};

}  // namespace tutti
