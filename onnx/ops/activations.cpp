// Unary functions and activations.
#include <cmath>
#include <limits>

#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

using Unary = Value (*)(Value);

void add_unary(Table& t, const std::string& name, Unary f) {
  t[name] = [f](const Context& c) { return Values{f(c.in(0))}; };
}

Value hardsigmoid(Value x, double alpha, double beta) { return clamp(x * alpha + beta, 0, 1); }

/// elu with any alpha: in ONNX it may be negative.
Value elu_of_any(Value x, double alpha) { return alpha >= 0 ? elu(x, alpha) : select(x > 0, x, -elu(x, -alpha)); }

/// Clamps the tensor; both bounds are optional.
Value clip(const Context& c) {
  Value x = c.in(0);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (c.opset() < 11) return clamp(x, c.f("min", -infinity), c.f("max", infinity));
  if (is_float(x.dtype()) && (!c.has(1) || c.known(1)) && (!c.has(2) || c.known(2))) {
    double low = c.has(1) ? c.number(1, "min") : -infinity, high = c.has(2) ? c.number(2, "max") : infinity;
    if (low <= high) return clamp(x, low, high);
  }
  if (c.has(1)) x = maximum(x, c.in(1));
  return c.has(2) ? minimum(x, c.in(2)) : x;
}

}  // namespace

void add_activations(Table& t) {
  add_unary(t, "Abs", [](Value x) { return x.dtype() == DType::u8 || x.dtype() == DType::u32 ? x : abs(x); });
  add_unary(t, "Acos", acos);
  add_unary(t, "Acosh", acosh);
  add_unary(t, "Asin", asin);
  add_unary(t, "Asinh", asinh);
  add_unary(t, "Atan", atan);
  add_unary(t, "Atanh", atanh);
  add_unary(t, "Ceil", ceil);
  add_unary(t, "Cos", cos);
  add_unary(t, "Cosh", cosh);
  add_unary(t, "Erf", erf);
  add_unary(t, "Exp", exp);
  add_unary(t, "Floor", [](Value x) { return is_float(x.dtype()) ? floor(x) : x; });
  add_unary(t, "HardSwish", [](Value x) { return x * hardsigmoid(x, 1.0 / 6, 0.5); });
  add_unary(t, "Identity", [](Value x) { return x; });
  add_unary(t, "IsNaN", isnan);
  add_unary(t, "Log", log);
  add_unary(t, "Mish", mish);
  add_unary(t, "Neg", [](Value x) { return -x; });
  add_unary(t, "Reciprocal", reciprocal);
  add_unary(t, "Relu", relu);
  add_unary(t, "Round", round);
  add_unary(t, "Sigmoid", sigmoid);
  add_unary(t, "Sign", sign);
  add_unary(t, "Sin", sin);
  add_unary(t, "Sinh", sinh);
  add_unary(t, "Softplus", softplus);
  add_unary(t, "Softsign", softsign);
  add_unary(t, "Sqrt", sqrt);
  add_unary(t, "Tan", [](Value x) { return sin(x) / cos(x); });
  add_unary(t, "Tanh", tanh);

  t["Celu"] = [](const Context& c) { return Values{celu(c.in(0), c.f("alpha", 1))}; };
  t["Clip"] = [](const Context& c) { return Values{clip(c)}; };
  t["Elu"] = [](const Context& c) { return Values{elu_of_any(c.in(0), c.f("alpha", 1))}; };
  t["Gelu"] = [](const Context& c) { return Values{gelu(c.in(0), c.s("approximate", "none"))}; };
  t["HardSigmoid"] = [](const Context& c) { return Values{hardsigmoid(c.in(0), c.f("alpha", 0.2), c.f("beta", 0.5))}; };
  t["IsInf"] = [](const Context& c) {
    Value x = c.in(0);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    bool negative = c.i("detect_negative", 1) != 0, positive = c.i("detect_positive", 1) != 0;
    if (negative && positive) return Values{isinf(x)};
    if (!negative && !positive) return Values{broadcast(c.graph().full(DType::boolean, 0), x.shape())};
    return Values{equal(x, x.like(positive ? infinity : -infinity))};
  };
  t["LeakyRelu"] = [](const Context& c) { return Values{leaky_relu(c.in(0), c.f("alpha", 0.01))}; };
  t["PRelu"] = [](const Context& c) {
    Value x = c.in(0);
    return Values{select(less(x.like(0), x), broadcast(x, broadcast_shapes(x.shape(), c.in(1).shape())), x * c.in(1))};
  };
  t["Selu"] = [](const Context& c) {
    double alpha = c.f("alpha", 1.67326319217681884765625), gamma = c.f("gamma", 1.05070102214813232421875);
    return Values{elu_of_any(c.in(0), alpha) * gamma};
  };
  t["Shrink"] = [](const Context& c) {
    Value x = c.in(0);
    double lambd = c.f("lambd", 0.5), bias = c.f("bias", 0);
    return Values{select(x < -lambd, x + bias, select(x > lambd, x - bias, x.like(0)))};
  };
  t["Swish"] = [](const Context& c) {
    Value x = c.in(0);
    return Values{x * sigmoid(x * c.f("alpha", 1))};
  };
  t["ThresholdedRelu"] = [](const Context& c) {
    Value x = c.in(0);
    return Values{select(x > c.f("alpha", 1), x, x.like(0))};
  };
}

}  // namespace tutti::onnx
