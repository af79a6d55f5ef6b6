#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef sgd_momentum_op;
/// One step of SGD with momentum (PyTorch's; m starts at 0): {new p, new m}. `lr` is a scalar; results have the
/// dtypes of p and m.
inline Values sgd_momentum(Value p, Value g, Value m, Value lr, double momentum, bool nesterov = false,
                           double weight_decay = 0) {
  return call_all(sgd_momentum_op, {p, g, m, lr},
                  {{"momentum", Reals{momentum}}, {"nesterov", Ints{nesterov}}, {"weight_decay", Reals{weight_decay}}});
}
// end of public
namespace {

Sample sample(Shape p, double weight_decay, bool nesterov) {
  return {.shapes = {p, p, p, {}},
          .attrs = {{"weight_decay", Reals{weight_decay}}, {"nesterov", Ints{nesterov}}},
          .ranges = {{}, {}, {}, {0.01, 0.5}}};
}

}  // namespace

const OpDef sgd_momentum_op{
    .name = "sgd_momentum",
    .doc = "h = g + weight_decay p; m' = momentum m + h; p' = p - lr (nesterov ? h + momentum m' : m')",
    .inputs = {"p", "g", "m", "lr"},
    .results = {"p'", "m'"},
    .attrs = {{"momentum", Reals{0.9}}, {"nesterov", Ints{0}}, {"weight_decay", Reals{0.0}}},
    .expr =
        [](In x, const Attrs& a) {
          Ex p = x[0], g = cast(x[1], p.dtype()), m = cast(x[2], p.dtype()), lr = cast(x[3], p.dtype());
          double momentum = a.f("momentum");
          if (a.f("weight_decay") != 0) g = g + a.f("weight_decay") * p;
          m = momentum * m + g;
          Ex step = a.i("nesterov") ? g + momentum * m : m;
          return Exs{p - lr * step, cast(m, x[2].dtype())};
        },
    .samples = {sample({3, 5}, 0, false), sample({64}, 0.1, false), sample({64}, 0.1, true), sample({0}, 0, true),
                sample({65537}, 0.01, false)}};

}  // namespace tutti
