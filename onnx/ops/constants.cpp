// Values computed from attributes and shapes only.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "graph/functions/lines.h"
#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

constexpr int64_t most = int64_t{1} << 24;  // element limit for a generated constant

DType dtype_named(const Context& c, int64_t type) {
  auto dtype = dtype_of(static_cast<ElementType>(type));
  if (!dtype) c.unsupported(fmt::format("element type {}", element_name(static_cast<ElementType>(type))));
  return *dtype == DType::i64 ? DType::i32 : *dtype;
}

/// An attribute without clamping, with all 64 bits.
template <class T>
const T& attribute(const Context& c, const std::string& name) {
  const T* x = std::get_if<T>(&c.node().attributes.at(name));
  if (!x) c.bad(fmt::format("attribute '{}' does not have the type that the ONNX specification gives it", name));
  return *x;
}

Value constant(const Context& c) {
  Graph& g = c.graph();
  if (c.has_attribute("value")) return constant_from(g, c.tensor("value"), c.place());
  if (c.has_attribute("value_float")) return g.full(DType::f32, c.f("value_float", 0));
  if (c.has_attribute("value_int"))
    return constant_from(g, host_tensor(DType::i64, {}, std::vector<int64_t>{attribute<int64_t>(c, "value_int")}),
                         c.place());
  if (c.has_attribute("value_floats")) {
    Reals x = c.reals("value_floats");
    return constant_of(g, {DType::f32, {static_cast<int64_t>(x.size())}}, x);
  }
  if (c.has_attribute("value_ints")) {
    auto x = attribute<Ints>(c, "value_ints");
    return constant_from(g, host_tensor(DType::i64, {static_cast<int64_t>(x.size())}, x), c.place());
  }
  c.unsupported("a constant other than a dense tensor of numbers");
}

Value filled(const Context& c) {
  Shape shape = c.integers(0, "shape");
  Value one = c.has_attribute("value") ? reshape(constant_from(c.graph(), c.tensor("value"), c.place()), {})
                                       : c.graph().full(DType::f32, 0);
  return broadcast(one, shape);
}

Value range(const Context& c) {
  double start = c.number(0, "start"), limit = c.number(1, "limit"), delta = c.number(2, "delta");
  double count = std::ceil((limit - start) / delta);
  if (!(count <= static_cast<double>(most))) c.unsupported(fmt::format("a range of {} elements (at most 2^24)", count));
  Reals x;
  for (int64_t k = 0; k < static_cast<int64_t>(count); ++k) x.push_back(start + static_cast<double>(k) * delta);
  return constant_of(c.graph(), {c.in(0).dtype(), {static_cast<int64_t>(x.size())}}, x);
}

Value eye(const Context& c) {
  Value x = c.in(0);
  if (x.rank() != 2) c.bad("the input must be a matrix (rank 2)");
  DType dtype = c.has_attribute("dtype") ? dtype_named(c, c.i("dtype", 1)) : x.dtype();
  Graph& g = c.graph();
  Value at = iota(g, x.shape(), 1) - iota(g, x.shape(), 0);
  return cast(equal(at, at.like(static_cast<double>(c.i("k", 0)))), dtype);
}

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N); N is one less if the window is not periodic.
Value window(const Context& c, double a0, double a1, double a2) {
  int64_t size = c.integer(0, "size");
  if (size < 0 || size > most) c.unsupported(fmt::format("a window of {} elements (0 to 2^24)", size));
  double n = static_cast<double>(c.i("periodic", 1) != 0 ? size : size - 1);
  Reals x;
  for (int64_t k = 0; k < size; ++k) {
    double angle = 2 * std::numbers::pi * static_cast<double>(k) / n;
    x.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return constant_of(c.graph(), {dtype_named(c, c.i("output_datatype", 1)), {size}}, x);
}

}  // namespace

void add_constants(Table& t) {
  t["Constant"] = [](const Context& c) { return Values{constant(c)}; };
  t["ConstantOfShape"] = [](const Context& c) { return Values{filled(c)}; };
  t["Range"] = [](const Context& c) { return Values{range(c)}; };
  t["EyeLike"] = [](const Context& c) { return Values{eye(c)}; };
  t["HannWindow"] = [](const Context& c) { return Values{window(c, 0.5, 0.5, 0)}; };
  t["HammingWindow"] = [](const Context& c) { return Values{window(c, 25.0 / 46, 21.0 / 46, 0)}; };
  t["BlackmanWindow"] = [](const Context& c) { return Values{window(c, 0.42, 0.5, 0.08)}; };
}

}  // namespace tutti::onnx
