#include "graph/ops.h"
//: /// y = e^x
//: inline Value exp(Value x) { return call(exp_op, {x}); }

namespace tutti {

const OpDef exp_op{
    .name = "exp",
    .doc = "y = e^x",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{exp(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = -3, .high = 3}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -30, .high = 30}}};

}  // namespace tutti
