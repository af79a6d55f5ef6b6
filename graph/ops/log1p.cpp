#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef log1p_op;
/// y = ln(1 + x), accurate near 0
inline Value log1p(Value x) { return call(log1p_op, {x}); }
// end of public

const OpDef log1p_op{.name = "log1p",
                     .doc = "y = ln(1 + x), accurate near 0",
                     .inputs = {"x"},
                     .expr = [](In x, const Attrs&) { return Exs{log1p(x[0])}; },
                     .samples = {{.shapes = {{3, 5}}, .low = -0.8, .high = 3},
                                 {.shapes = {{0}}},
                                 {.shapes = {{65537}}, .low = -0.8, .high = 3}}};

}  // namespace tutti
