#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef logical_and_op;
/// y = a and b (bool; bitwise on integers)
inline Value logical_and(Value a, Value b) { return call(logical_and_op, {a, b}); }
// end of public

const OpDef logical_and_op{
    .name = "logical_and",
    .doc = "y = a and b (bool; bitwise on integers)",
    .inputs = {"a", "b"},
    .expr = [](In x, const Attrs&) { return Exs{x[0] & x[1]}; },
    .samples = {{.shapes = {{3, 5}, {3, 5}}, .low = 0, .high = 1, .dtypes = {DType::boolean, DType::boolean}},
                {.shapes = {{2, 1, 4}, {3, 1}}, .low = 0, .high = 1, .dtypes = {DType::boolean, DType::boolean}},
                {.shapes = {{5}, {}}, .low = 0, .high = 1, .dtypes = {DType::boolean, DType::boolean}},
                {.shapes = {{0}, {1}}, .dtypes = {DType::boolean, DType::boolean}}}};

}  // namespace tutti
