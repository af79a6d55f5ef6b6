// Unary functions that are ONNX ops.
#include <cmath>

#include "onnx/form.h"

namespace tutti::onnx {
namespace {

bool floats(const Graph& g, const tutti::Node& n) { return is_float(g.info(n.inputs[0]).type.dtype); }

void add_unary(Forms& f, const std::string& ours, const std::string& theirs) {
  f.by_op[ours] = {[theirs](Raising& r, const tutti::Node& n) { return Names{r.add(theirs, {r.in(n, 0)})}; }, floats};
}

/// The same with the attribute alpha.
void add_with_alpha(Forms& f, const std::string& ours, const std::string& theirs) {
  f.by_op[ours] = {[theirs](Raising& r, const tutti::Node& n) {
                     return Names{r.add(theirs, {r.in(n, 0)}, {{"alpha", n.attrs.f("alpha")}})};
                   },
                   floats};
}

Names clip(Raising& r, const tutti::Node& n) {
  DType t = r.type(n.inputs[0]).dtype;
  auto limit = [&](const char* name) {
    double x = n.attrs.f(name);
    return std::isinf(x) ? std::string() : r.number(t, x);
  };
  return {r.add("Clip", {r.in(n, 0), limit("low"), limit("high")})};
}

Names silu(Raising& r, const tutti::Node& n) {
  std::string x = r.in(n, 0);
  return {r.add("Mul", {x, r.add("Sigmoid", {x})})};
}

Names gelu(Raising& r, const tutti::Node& n) {
  return {r.add("Gelu", {r.in(n, 0)}, {{"approximate", n.attrs.text("approximate")}})};
}

}  // namespace

void add_activations(Forms& f) {
  add_unary(f, "acos", "Acos");
  add_unary(f, "asin", "Asin");
  add_unary(f, "atan", "Atan");
  add_unary(f, "cosh", "Cosh");
  add_unary(f, "relu", "Relu");
  add_unary(f, "sigmoid", "Sigmoid");
  add_unary(f, "sign", "Sign");
  add_unary(f, "sinh", "Sinh");
  add_unary(f, "softplus", "Softplus");
  add_with_alpha(f, "elu", "Elu");
  add_with_alpha(f, "leaky_relu", "LeakyRelu");
  for (const char* op : {"clamp", "hardtanh"}) f.by_op[op] = {clip, floats};
  f.by_op["gelu"] = {gelu, floats};
  f.by_op["silu"] = {silu, floats};
}

}  // namespace tutti::onnx
