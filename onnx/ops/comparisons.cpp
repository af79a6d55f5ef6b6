// Comparisons, logic and selection.
#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

void add_binary(Table& t, const std::string& name, Value (*f)(Value, Value)) {
  t[name] = [f](const Context& c) { return Values{f(c.in(0), c.in(1))}; };
}

/// Casts bool to i32: not every device compares bool.
Value comparable(Value x) { return x.dtype() == DType::boolean ? cast(x, DType::i32) : x; }

Value bitwise_xor(Value a, Value b) { return logical_or(a, b) - logical_and(a, b); }

}  // namespace

void add_comparisons(Table& t) {
  add_binary(t, "Equal", [](Value a, Value b) { return equal(comparable(a), comparable(b)); });
  add_binary(t, "Greater", greater);
  add_binary(t, "GreaterOrEqual", greater_equal);
  add_binary(t, "Less", [](Value a, Value b) { return less(a, b); });
  add_binary(t, "LessOrEqual", [](Value a, Value b) { return less_equal(a, b); });
  add_binary(t, "And", [](Value a, Value b) { return logical_and(a, b); });
  add_binary(t, "Or", [](Value a, Value b) { return logical_or(a, b); });
  add_binary(t, "Xor", [](Value a, Value b) { return not_equal(comparable(a), comparable(b)); });
  add_binary(t, "BitwiseAnd", [](Value a, Value b) { return logical_and(a, b); });
  add_binary(t, "BitwiseOr", [](Value a, Value b) { return logical_or(a, b); });
  add_binary(t, "BitwiseXor", bitwise_xor);
  t["Not"] = [](const Context& c) { return Values{logical_not(c.in(0))}; };
  t["BitwiseNot"] = [](const Context& c) {
    Value x = c.in(0);
    if (x.dtype() == DType::i32) return Values{-x - 1};
    if (x.dtype() == DType::u8) return Values{x.like(255) - x};
    c.unsupported("BitwiseNot of UINT32");
  };
  t["Where"] = [](const Context& c) { return Values{where(c.in(0), c.in(1), c.in(2))}; };
}

}  // namespace tutti::onnx
