#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef div_op;
/// y = a / b
inline Value operator/(Value a, Value b) { return call(div_op, {a, b}); }
inline Value operator/(Value a, double b) { return a / a.like(b); }
inline Value operator/(double a, Value b) { return b.like(a) / b; }
// end of public

const OpDef div_op{.name = "div",
                   .doc = "y = a / b",
                   .inputs = {"a", "b"},
                   .expr = [](In x, const Attrs&) { return Exs{x[0] / x[1]}; },
                   .samples = {{.shapes = {{3, 5}, {3, 5}}, .low = 0.3, .high = 2},
                               {.shapes = {{2, 1, 4}, {3, 1}}, .low = 0.3, .high = 2},
                               {.shapes = {{5}, {}}, .low = 0.3, .high = 2},
                               {.shapes = {{0}, {1}}},
                               {.shapes = {{257, 129}, {129}}, .low = 0.3, .high = 2}}};

}  // namespace tutti
