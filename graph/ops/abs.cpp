#include "graph/ops.h"
//: /// y = |x|
//: inline Value abs(Value x) { return call(abs_op, {x}); }

namespace tutti {

const OpDef abs_op{.name = "abs",
                   .doc = "y = |x|",
                   .inputs = {"x"},
                   .expr = [](In x, const Attrs&) { return Exs{abs(x[0])}; },
                   .samples = {{.shapes = {{3, 5}}, .low = -3, .high = 3, .kinks = {0}},
                               {.shapes = {{0}}},
                               {.shapes = {{65537}}, .low = -3, .high = 3, .kinks = {0}}}};

}  // namespace tutti
