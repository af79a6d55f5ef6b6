#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef less_equal_op;
/// y = a <= b
inline Value less_equal(Value a, Value b) { return call(less_equal_op, {a, b}); }
// end of public

const OpDef less_equal_op{
    .name = "less_equal",
    .doc = "y = a <= b",
    .inputs = {"a", "b"},
    .expr = [](In x, const Attrs&) { return Exs{x[0] <= x[1]}; },
    .samples = {{.shapes = {{3, 5}, {3, 5}}, .low = -2, .high = 2},
                {.shapes = {{2, 1, 4}, {3, 1}}, .low = -2, .high = 2},
                {.shapes = {{5}, {}}, .low = -2, .high = 2},
                {.shapes = {{0}, {1}}},
                {.shapes = {{5, 7}, {7}}, .low = 0, .high = 2, .dtypes = {DType::i32, DType::i32}},
                {.shapes = {{257, 129}, {129}}, .low = -2, .high = 2}}};

}  // namespace tutti
