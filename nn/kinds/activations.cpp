// Elementwise functions, and softmax.
#include <fmt/format.h>

#include "graph/functions/elementwise.h"
#include "graph/ops/elu.h"
#include "graph/ops/gelu.h"
#include "graph/ops/leaky_relu.h"
#include "graph/ops/log_softmax.h"
#include "graph/ops/softmax.h"
#include "graph/ops/tanh.h"
#include "nn/kind.h"

namespace tutti::nn {
namespace {

struct Prelu {
  double init;
  Value forward(Builder& b, Value x) const { return prelu(x, b.parameter("weight", {1}, {Init::uniform, init, init})); }
  std::string describe() const { return "PReLU"; }
};

}  // namespace

extern const LayerKind relu_kind{
    .name = "ReLU", .doc = "max(0, x)", .arguments = {}, .make = [](const Arguments&) -> Layer { return Relu(); }};

extern const LayerKind relu6_kind{
    .name = "ReLU6", .doc = "min(max(0, x), 6)", .arguments = {}, .make = [](const Arguments&) -> Layer {
      return Relu6();
    }};

extern const LayerKind leaky_relu_kind{
    .name = "LeakyReLU",
    .doc = "x if x > 0, else negative_slope * x",
    .arguments = {{.name = "negative_slope", .type = Argument::real, .otherwise = 0.01}},
    .make = [](const Arguments& a) -> Layer {
      double slope = a.real("negative_slope");
      return Activation(fmt::format("LeakyReLU({})", slope), [slope](Value x) { return leaky_relu(x, slope); });
    }};

extern const LayerKind prelu_kind{.name = "PReLU",
                                  .doc = "x if x > 0, else weight * x; weight is a single trained number",
                                  .arguments = {{.name = "init", .type = Argument::real, .otherwise = 0.25}},
                                  .make = [](const Arguments& a) -> Layer { return Prelu{a.real("init")}; }};

extern const LayerKind elu_kind{.name = "ELU",
                                .doc = "x if x > 0, else alpha * (e^x - 1)",
                                .arguments = {{.name = "alpha", .type = Argument::real, .otherwise = 1.0}},
                                .make = [](const Arguments& a) -> Layer {
                                  double alpha = a.real("alpha");
                                  return Activation(fmt::format("ELU({})", alpha),
                                                    [alpha](Value x) { return elu(x, alpha); });
                                }};

extern const LayerKind gelu_kind{
    .name = "GELU",
    .doc = "x * cdf(x), with the cdf of the normal distribution",
    .arguments = {{.name = "approximate",
                   .type = Argument::text,
                   .otherwise = std::string("none"),
                   .choices = {"none", "tanh"}}},
    .make = [](const Arguments& a) -> Layer { return a.text("approximate") == "tanh" ? GeluTanh() : Gelu(); }};

extern const LayerKind silu_kind{
    .name = "SiLU", .doc = "x * sigmoid(x)", .arguments = {}, .make = [](const Arguments&) -> Layer { return Silu(); }};

extern const LayerKind sigmoid_kind{
    .name = "Sigmoid", .doc = "1 / (1 + e^-x)", .arguments = {}, .make = [](const Arguments&) -> Layer {
      return Sigmoid();
    }};

extern const LayerKind tanh_kind{
    .name = "Tanh", .doc = "the hyperbolic tangent", .arguments = {}, .make = [](const Arguments&) -> Layer {
      return Tanh();
    }};

extern const LayerKind softplus_kind{
    .name = "Softplus", .doc = "ln(1 + e^x)", .arguments = {}, .make = [](const Arguments&) -> Layer {
      return Softplus();
    }};

extern const LayerKind mish_kind{
    .name = "Mish", .doc = "x * tanh(ln(1 + e^x))", .arguments = {}, .make = [](const Arguments&) -> Layer {
      return Activation("Mish", [](Value x) { return mish(x); });
    }};

extern const LayerKind hardswish_kind{
    .name = "Hardswish", .doc = "x * relu6(x + 3) / 6", .arguments = {}, .make = [](const Arguments&) -> Layer {
      return Activation("Hardswish", [](Value x) { return hardswish(x); });
    }};

extern const LayerKind hardsigmoid_kind{
    .name = "Hardsigmoid", .doc = "relu6(x + 3) / 6", .arguments = {}, .make = [](const Arguments&) -> Layer {
      return Activation("Hardsigmoid", [](Value x) { return hardsigmoid(x); });
    }};

extern const LayerKind softmax_kind{.name = "Softmax",
                                    .doc = "softmax along an axis; do not put it before a loss, which expects logits",
                                    .arguments = {{.name = "dim", .otherwise = int64_t{-1}, .least = -8}},
                                    .make = [](const Arguments& a) -> Layer {
                                      int64_t axis = a.whole("dim");
                                      return Activation("Softmax", [axis](Value x) { return softmax(x, axis); });
                                    }};

}  // namespace tutti::nn
