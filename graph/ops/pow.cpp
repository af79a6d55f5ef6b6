#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef pow_op;
/// y = a^b for a >= 0 (or an integer b)
inline Value pow(Value a, Value b) { return call(pow_op, {a, b}); }
// end of public

const OpDef pow_op{
    .name = "pow",
    .doc = "y = a^b for a >= 0 (or a whole b); the gradient to a is 0 where b is 0, to b 0 where a is 0 and b >= 0",
    .inputs = {"a", "b"},
    .expr = [](In x, const Attrs&) { return Exs{pow(x[0], x[1])}; },
    .samples = {{.shapes = {{3, 5}, {3, 5}}, .low = 0.2, .high = 2.5},
                {.shapes = {{2, 1, 4}, {3, 1}}, .low = 0.2, .high = 2.5},
                {.shapes = {{5}, {}}, .low = 0.2, .high = 2.5},
                {.shapes = {{0}, {1}}},
                {.shapes = {{257, 129}, {129}}, .low = 0.2, .high = 2.5}}};

}  // namespace tutti
