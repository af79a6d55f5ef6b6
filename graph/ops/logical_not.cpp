#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef logical_not_op;
/// y = not x (bool)
inline Value logical_not(Value x) { return call(logical_not_op, {x}); }
// end of public

const OpDef logical_not_op{
    .name = "logical_not",
    .doc = "y = not x (bool)",
    .inputs = {"x"},
    .expr = [](In x, const Attrs&) { return Exs{!x[0]}; },
    .samples = {{.shapes = {{3, 5}}, .dtypes = {DType::boolean}}, {.shapes = {{0}}, .dtypes = {DType::boolean}}}};

}  // namespace tutti
