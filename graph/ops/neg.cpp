#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef neg_op;
/// y = -x
inline Value operator-(Value x) { return call(neg_op, {x}); }
// end of public

const OpDef neg_op{.name = "neg",
                   .doc = "y = -x",
                   .inputs = {"x"},
                   .expr = [](In x, const Attrs&) { return Exs{-x[0]}; },
                   .samples = {{.shapes = {{3, 5}}}, {.shapes = {{0}}}, {.shapes = {{65537}}}}};

}  // namespace tutti
