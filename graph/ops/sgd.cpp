#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef sgd_op;
/// One step of gradient descent: the new p. `lr` is a scalar; results have the dtype of p.
inline Value sgd(Value p, Value g, Value lr, double weight_decay = 0) {
  return call(sgd_op, {p, g, lr}, {{"weight_decay", Reals{weight_decay}}});
}
// end of public

const OpDef sgd_op{
    .name = "sgd",
    .doc = "p' = p - lr (g + weight_decay p)",
    .inputs = {"p", "g", "lr"},
    .results = {"p'"},
    .attrs = {{"weight_decay", Reals{0.0}}},
    .expr =
        [](In x, const Attrs& a) {
          Ex p = x[0], g = cast(x[1], p.dtype()), lr = cast(x[2], p.dtype());
          if (a.f("weight_decay") != 0) g = g + a.f("weight_decay") * p;
          return Exs{p - lr * g};
        },
    .samples = {{.shapes = {{3, 5}, {3, 5}, {}}, .ranges = {{}, {}, {0.01, 0.5}}},
                {.shapes = {{64}, {64}, {}}, .attrs = {{"weight_decay", Reals{0.1}}}, .ranges = {{}, {}, {0.01, 0.5}}},
                {.shapes = {{0}, {0}, {}}},
                {.shapes = {{65537}, {65537}, {}}, .ranges = {{}, {}, {0.01, 0.5}}}}};

}  // namespace tutti
