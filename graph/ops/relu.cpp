#include "graph/op.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/select.h"

namespace tutti {

// public
extern TUTTI_API const OpDef relu_op;
/// y = max(x, 0); the gradient at 0 is 0
inline Value relu(Value x) { return call(relu_op, {x}); }
// end of public

const OpDef relu_op{.name = "relu",
                    .doc = "y = max(x, 0); the gradient at 0 is 0 and at NaN 1",
                    .inputs = {"x"},
                    .expr = [](In x, const Attrs&) { return Exs{max(x[0], 0)}; },
                    .vjp =
                        [](const VjpContext& g) {  // y <= 0 exactly if x <= 0; so x need not be kept
                          Value y = g.out[0], d = g.d[0];
                          return Values{select(less_equal(y, y.like(0)), d.like(0), d)};
                        },
                    .samples = {{.shapes = {{3, 5}}, .low = -2, .high = 2, .kinks = {0}},
                                {.shapes = {{0}}},
                                {.shapes = {{65537}}, .low = -2, .high = 2, .kinks = {0}}}};

}  // namespace tutti
