#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops.h"
//: /// y = x Phi(x), Phi the normal distribution; `approximate` is "none" (erf) or "tanh" (Hendrycks & Gimpel 2016)
//: inline Value gelu(Value x, std::string approximate = "none") {
//:   return call(gelu_op, {x}, {{"approximate", std::move(approximate)}});
//: }

namespace tutti {

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
          if (how == "tanh") return Exs{x * 0.5 * (1 + tanh(0.79788456080286536 * (x + 0.044715 * (x * x * x))))};
          throw invalid(fmt::format("approximate is '{}', not 'none' or 'tanh'", how));
        },
    .samples = {{.shapes = {{3, 5}}, .low = -3, .high = 3},
                {.shapes = {{3, 5}}, .low = -3, .high = 3, .attrs = {{"approximate", std::string("tanh")}}},
                {.shapes = {{0}}},
                {.shapes = {{65537}}, .low = -6, .high = 6},
                {.shapes = {{65537}}, .low = -6, .high = 6, .attrs = {{"approximate", std::string("tanh")}}}}};

}  // namespace tutti
