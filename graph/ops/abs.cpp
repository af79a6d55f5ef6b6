#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef abs_op;
/// y = |x|
inline Value abs(Value x) { return call(abs_op, {x}); }
// end of public

const OpDef abs_op{.name = "abs",
                   .doc = "y = |x|",
                   .inputs = {"x"},
                   .expr = [](In x, const Attrs&) { return Exs{abs(x[0])}; },
                   .samples = {{.shapes = {{3, 5}}, .low = -3, .high = 3, .kinks = {0}},
                               {.shapes = {{0}}},
                               {.shapes = {{65537}}, .low = -3, .high = 3, .kinks = {0}}}};

}  // namespace tutti
