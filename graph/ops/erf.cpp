#include "graph/ops.h"
//: /// y = 2/sqrt(pi) * integral from 0 to x of e^(-t^2) dt
//: inline Value erf(Value x) { return call(erf_op, {x}); }

namespace tutti {

const OpDef erf_op{
    .name = "erf",
    .doc = "y = 2/sqrt(pi) * integral from 0 to x of e^(-t^2) dt",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{erf(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = -2, .high = 2}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -5, .high = 5}}};

}  // namespace tutti
