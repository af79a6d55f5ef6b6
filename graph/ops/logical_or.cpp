#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef logical_or_op;
/// y = a or b (bool; bitwise on integers)
inline Value logical_or(Value a, Value b) { return call(logical_or_op, {a, b}); }
// end of public

const OpDef logical_or_op{
    .name = "logical_or",
    .doc = "y = a or b (bool; bitwise on integers)",
    .inputs = {"a", "b"},
    .expr = [](In x, const Attrs&) { return Exs{x[0] | x[1]}; },
    .samples = {{.shapes = {{3, 5}, {3, 5}}, .low = 0, .high = 1, .dtypes = {DType::boolean, DType::boolean}},
                {.shapes = {{2, 1, 4}, {3, 1}}, .low = 0, .high = 1, .dtypes = {DType::boolean, DType::boolean}},
                {.shapes = {{5}, {}}, .low = 0, .high = 1, .dtypes = {DType::boolean, DType::boolean}},
                {.shapes = {{0}, {1}}, .dtypes = {DType::boolean, DType::boolean}}}};

}  // namespace tutti
