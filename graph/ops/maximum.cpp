#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef maximum_op;
/// y = max(a, b); NaN if either is; equal operands share the gradient; if one is NaN both get it
inline Value maximum(Value a, Value b) { return call(maximum_op, {a, b}); }
// end of public

const OpDef maximum_op{
    .name = "maximum",
    .doc = "y = max(a, b); NaN if either is; equal operands share the gradient, beside a NaN both get it",
    .inputs = {"a", "b"},
    .expr = [](In x, const Attrs&) { return Exs{max(x[0], x[1])}; },
    .samples = {{.shapes = {{3, 5}, {3, 5}}, .low = -2, .high = 2},
                {.shapes = {{2, 1, 4}, {3, 1}}, .low = -2, .high = 2},
                {.shapes = {{5}, {}}, .low = -2, .high = 2},
                {.shapes = {{0}, {1}}},
                {.shapes = {{257, 129}, {129}}, .low = -2, .high = 2}}};

}  // namespace tutti
