// Arithmetic and casts.
#include <fmt/format.h>

#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

using Binary = Value (*)(Value, Value);

void add_binary(Table& t, const std::string& name, Binary f) {
  t[name] = [f](const Context& c) { return Values{f(c.in(0), c.in(1))}; };
}

/// Folds any number of operands with f, from left to right.
void add_fold(Table& t, const std::string& name, Binary f) {
  t[name] = [f](const Context& c) {
    Value y = c.in(0);
    for (size_t k = 1; k < c.inputs(); ++k) y = f(y, c.in(k));
    return Values{y};
  };
}

/// The result has the dtype of the base, whatever that of the exponent.
Value power(Value a, Value b) {
  DType dtype = a.dtype();
  if (is_float(dtype)) return pow(a, cast(b, dtype));
  return cast(round(pow(cast(a, DType::f32), cast(b, DType::f32))), dtype);
}

DType target(const Context& c, int64_t type) {
  auto dtype = dtype_of(static_cast<ElementType>(type));
  if (!dtype) c.unsupported(fmt::format("a cast to {}", element_name(static_cast<ElementType>(type))));
  return *dtype == DType::i64 ? DType::i32 : *dtype;
}

/// Casts; narrowing of integers keeps the low bits.
Value converted(Value x, DType to) {
  if (x.dtype() == DType::i32 && to == DType::u8) x = logical_and(x, x.like(255));
  return cast(x, to);
}

}  // namespace

void add_arithmetic(Table& t) {
  add_binary(t, "Add", [](Value a, Value b) { return a + b; });
  add_binary(t, "Sub", [](Value a, Value b) { return a - b; });
  add_binary(t, "Mul", [](Value a, Value b) { return a * b; });
  add_binary(t, "Div", [](Value a, Value b) { return is_float(a.dtype()) ? a / b : div(a, b, "trunc"); });
  add_binary(t, "Pow", power);
  add_fold(t, "Sum", [](Value a, Value b) { return a + b; });
  add_fold(t, "Max", [](Value a, Value b) { return maximum(a, b); });
  add_fold(t, "Min", [](Value a, Value b) { return minimum(a, b); });
  t["Mean"] = [](const Context& c) {
    Value y = c.in(0);
    for (size_t k = 1; k < c.inputs(); ++k) y = y + c.in(k);
    return Values{y * (1.0 / static_cast<double>(c.inputs()))};
  };
  t["Mod"] = [](const Context& c) {
    Value a = c.in(0), b = c.in(1);
    return Values{c.i("fmod", 0) != 0 ? fmod(a, b) : remainder(a, b)};
  };
  t["Cast"] = [](const Context& c) { return Values{converted(c.in(0), target(c, c.i("to", 0)))}; };
  t["CastLike"] = [](const Context& c) { return Values{converted(c.in(0), c.in(1).dtype())}; };
}

}  // namespace tutti::onnx
