#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/clamp.h"
#include "graph/ops/erf.h"
#include "graph/ops/exp.h"
#include "graph/ops/mul.h"
#include "graph/ops/sub.h"
#include "graph/ops/tanh.h"

namespace tutti {

// public
extern TUTTI_API const OpDef gelu_op;
/// y = x Phi(x), Phi the normal distribution's CDF; `approximate` is "none" (erf) or "tanh" (Hendrycks & Gimpel 2016)
inline Value gelu(Value x, std::string approximate = "none") {
  return call(gelu_op, {x}, {{"approximate", std::move(approximate)}});
}
// end of public
namespace {

constexpr double root_2_over_pi = 0.79788456080286536, cubic = 0.044715;

/// The derivative of x P(x) is P + x P'; d is multiplied last, so that large x and d do not overflow in between.
Values vjp(const VjpContext& g) {
  Value x = g.in[0];
  if (g.a.text("approximate") == "none") {
    Value density = exp(x * x * -0.5) * 0.3989422804014327;
    return {g.d[0] * (0.5 * (1 + erf(x * 0.70710678118654752)) + x * density)};
  }
  Value near = clamp(x, -40, 40), square = near * near;  // beyond 40 P' is 0 and the cube may overflow
  Value t = tanh(root_2_over_pi * (near + cubic * (square * near)));
  Value slope = (1 - t * t) * (root_2_over_pi * (1 + 3 * cubic * square));
  return {g.d[0] * (0.5 * (1 + t) + 0.5 * x * slope)};
}

}  // namespace

const OpDef gelu_op{
    .name = "gelu",
    .doc =
        "y = x (1 + erf(x / sqrt 2)) / 2, or with approximate = \"tanh\": "
        "y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2",
    .inputs = {"x"},
    .attrs = {{"approximate", std::string("none")}},
    .expr =
        [](In in, const Attrs& a) {
          Ex x = in[0];
          const std::string& how = a.text("approximate");
          if (how == "none") return Exs{x * 0.5 * (1 + erf(x * 0.70710678118654752))};
          if (how == "tanh") return Exs{x * 0.5 * (1 + tanh(root_2_over_pi * (x + cubic * (x * x * x))))};
          throw invalid(fmt::format("approximate is '{}', must be 'none' or 'tanh'", how));
        },
    .vjp = in_f32<vjp>,
    .samples = {{.shapes = {{3, 5}}, .low = -3, .high = 3},
                {.shapes = {{3, 5}}, .low = -3, .high = 3, .attrs = {{"approximate", std::string("tanh")}}},
                {.shapes = {{0}}},
                {.shapes = {{65537}}, .low = -6, .high = 6},
                {.shapes = {{65537}}, .low = -6, .high = 6, .attrs = {{"approximate", std::string("tanh")}}}}};

}  // namespace tutti
