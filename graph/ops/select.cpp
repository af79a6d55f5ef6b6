#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef select_op;
/// y = condition ? a : b, with broadcasting; condition is bool
inline Value select(Value condition, Value a, Value b) { return call(select_op, {condition, a, b}); }
// end of public

const OpDef select_op{.name = "select",
                      .doc = "y = condition ? a : b; condition is bool",
                      .inputs = {"condition", "a", "b"},
                      .expr = [](In x, const Attrs&) { return Exs{select(x[0], x[1], x[2])}; },
                      .samples = {{.shapes = {{3, 5}, {3, 5}, {3, 5}}, .dtypes = {DType::boolean}},
                                  {.shapes = {{4, 1}, {3}, {}}, .dtypes = {DType::boolean}},
                                  {.shapes = {{0}, {1}, {0}}, .dtypes = {DType::boolean}},
                                  {.shapes = {{257, 1}, {257, 129}, {129}}, .dtypes = {DType::boolean}}}};

}  // namespace tutti
