#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef floor_op;
/// y = the largest integer <= x; the gradient is 0
inline Value floor(Value x) { return call(floor_op, {x}); }
// end of public

const OpDef floor_op{.name = "floor",
                     .doc = "y = the largest whole number <= x; the gradient is 0",
                     .inputs = {"x"},
                     .expr = [](In x, const Attrs&) { return Exs{floor(x[0])}; },
                     .samples = {{.shapes = {{3, 5}}, .low = -3, .high = 3, .kinks = {-3, -2, -1, 0, 1, 2, 3}},
                                 {.shapes = {{0}}},
                                 {.shapes = {{65537}}, .low = -3, .high = 3, .kinks = {-3, -2, -1, 0, 1, 2, 3}}}};

}  // namespace tutti
