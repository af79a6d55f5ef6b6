#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef erf_op;
/// y = 2/sqrt(pi) * integral from 0 to x of e^(-t^2) dt
inline Value erf(Value x) { return call(erf_op, {x}); }
// end of public

const OpDef erf_op{
    .name = "erf",
    .doc = "y = 2/sqrt(pi) * integral from 0 to x of e^(-t^2) dt",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{erf(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = -2, .high = 2}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = -5, .high = 5}}};

}  // namespace tutti
