#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef mul_op;
/// y = a * b
inline Value operator*(Value a, Value b) { return call(mul_op, {a, b}); }
inline Value operator*(Value a, double b) { return a * a.like(b); }
inline Value operator*(double a, Value b) { return b.like(a) * b; }
// end of public

const OpDef mul_op{.name = "mul",
                   .doc = "y = a * b",
                   .inputs = {"a", "b"},
                   .expr = [](In x, const Attrs&) { return Exs{x[0] * x[1]}; },
                   .samples = {{.shapes = {{3, 5}, {3, 5}}, .low = -2, .high = 2},
                               {.shapes = {{2, 1, 4}, {3, 1}}, .low = -2, .high = 2},
                               {.shapes = {{5}, {}}, .low = -2, .high = 2},
                               {.shapes = {{0}, {1}}},
                               {.shapes = {{3, 5}, {5}}, .low = -9, .high = 9, .dtypes = {DType::i32, DType::i32}},
                               {.shapes = {{257, 129}, {129}}, .low = -2, .high = 2}}};

}  // namespace tutti
