#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef log_op;
/// y = ln x
inline Value log(Value x) { return call(log_op, {x}); }
// end of public

const OpDef log_op{.name = "log",
                   .doc = "y = ln x",
                   .inputs = {"x"},
                   .expr = [](In x, const Attrs&) { return Exs{log(x[0])}; },
                   .samples = {{.shapes = {{3, 5}}, .low = 0.1, .high = 4},
                               {.shapes = {{0}}},
                               {.shapes = {{65537}}, .low = 1e-3, .high = 1000}}};

}  // namespace tutti
