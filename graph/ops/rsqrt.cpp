#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef rsqrt_op;
/// y = 1 / sqrt(x)
inline Value rsqrt(Value x) { return call(rsqrt_op, {x}); }
// end of public

const OpDef rsqrt_op{
    .name = "rsqrt",
    .doc = "y = 1 / sqrt(x)",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{rsqrt(x[0])}; },
    .samples = {
        {.shapes = {{3, 5}}, .low = 0.1, .high = 4}, {.shapes = {{0}}}, {.shapes = {{65537}}, .low = 0.1, .high = 4}}};

}  // namespace tutti
