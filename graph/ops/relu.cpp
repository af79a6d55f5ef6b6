#include "graph/ops.h"
//: /// y = max(x, 0); the gradient at 0 is 0
//: inline Value relu(Value x) { return call(relu_op, {x}); }

namespace tutti {

const OpDef relu_op{.name = "relu",
                    .doc = "y = max(x, 0); the gradient at 0 is 0 and at NaN 1",
                    .inputs = {"x"},
                    .expr = [](In x, const Attrs&) { return Exs{max(x[0], 0)}; },
                    .vjp =
                        [](const Pull& g) {  // y <= 0 exactly where x <= 0, so that x need not be kept
                          Value y = g.out[0], d = g.d[0];
                          return Values{select(less_equal(y, y.like(0)), d.like(0), d)};
                        },
                    .samples = {{.shapes = {{3, 5}}, .low = -2, .high = 2, .kinks = {0}},
                                {.shapes = {{0}}},
                                {.shapes = {{65537}}, .low = -2, .high = 2, .kinks = {0}}}};

}  // namespace tutti
