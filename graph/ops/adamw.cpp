#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef adamw_op;
/// One step of AdamW (Loshchilov & Hutter 2019, PyTorch's order: p decays first): {new p, new m, new v}. `lr` and
/// the bias corrections c1 = 1 - beta1^t, c2 = 1 - beta2^t are scalars. Results have the dtypes of p, m and v.
inline Values adamw(Value p, Value g, Value m, Value v, Value lr, Value c1, Value c2, double beta1 = 0.9,
                    double beta2 = 0.999, double epsilon = 1e-8, double weight_decay = 0.01) {
  return call_all(adamw_op, {p, g, m, v, lr, c1, c2},
                  {{"beta1", Reals{beta1}},
                   {"beta2", Reals{beta2}},
                   {"epsilon", Reals{epsilon}},
                   {"weight_decay", Reals{weight_decay}}});
}
// end of public
namespace {

Sample sample(Shape p, double weight_decay, double epsilon) {
  return {.shapes = {p, p, p, p, {}, {}, {}},
          .attrs = {{"weight_decay", Reals{weight_decay}}, {"epsilon", Reals{epsilon}}},
          .ranges = {{}, {}, {}, {0.1, 1}, {0.01, 0.5}, {0.1, 1}, {0.1, 1}}};
}

}  // namespace

const OpDef adamw_op{
    .name = "adamw",
    .doc =
        "m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2; "
        "p' = p (1 - lr weight_decay) - lr / c1 * m' / (sqrt(v') / sqrt(c2) + epsilon)",
    .inputs = {"p", "g", "m", "v", "lr", "c1", "c2"},
    .results = {"p'", "m'", "v'"},
    .attrs = {{"beta1", Reals{0.9}}, {"beta2", Reals{0.999}}, {"epsilon", Reals{1e-8}}, {"weight_decay", Reals{0.01}}},
    .expr =
        [](In x, const Attrs& a) {
          double b1 = a.f("beta1"), b2 = a.f("beta2");
          auto in = [&](size_t i) { return cast(x[i], x[0].dtype()); };
          Ex g = in(1), lr = in(4), p = x[0] * (1 - lr * a.f("weight_decay"));
          Ex m = b1 * in(2) + (1 - b1) * g, v = b2 * in(3) + (1 - b2) * (g * g);
          Ex next = p - lr / in(5) * (m / (sqrt(v) / sqrt(in(6)) + a.f("epsilon")));
          return Exs{next, cast(m, x[2].dtype()), cast(v, x[3].dtype())};
        },
    .samples = {sample({3, 5}, 0.01, 1e-8), sample({64}, 0.3, 1e-2), sample({0}, 0.01, 1e-8),
                sample({65537}, 0.01, 1e-8)}};

}  // namespace tutti
