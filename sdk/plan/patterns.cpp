#include "sdk/plan/patterns.h"

#include <algorithm>
#include <limits>

namespace tutti::sdk {
namespace {

/// The only arithmetic instruction of an expression (besides inputs and constants), or null.
const TuttiInstr* only_instruction(const Node& n) {
  const TuttiInstr* found = nullptr;
  for (const TuttiInstr& i : n.expr) {
    if (i.code <= TUTTI_X_RESULT) continue;
    if (found) return nullptr;
    found = &i;
  }
  return found;
}

}  // namespace

uint32_t added_to(const Node& n, uint32_t x) {
  const TuttiInstr* i = only_instruction(n);
  if (!i || i->code != TUTTI_X_ADD || n.results.size() != 1) return TUTTI_NONE;
  const TuttiInstr &a = n.expr[i->a], &b = n.expr[i->b];
  if (a.code != TUTTI_X_INPUT || b.code != TUTTI_X_INPUT) return TUTTI_NONE;
  uint32_t p = n.inputs[a.a], q = n.inputs[b.a];
  return p == q ? TUTTI_NONE : p == x ? q : q == x ? p : TUTTI_NONE;
}

bool is_relu(const Node& n) {
  const TuttiInstr* i = only_instruction(n);
  if (!i || i->code != TUTTI_X_MAX || n.inputs.size() != 1 || n.results.size() != 1) return false;
  const TuttiInstr &a = n.expr[i->a], &b = n.expr[i->b];
  auto zero = [](const TuttiInstr& c) { return c.code == TUTTI_X_CONST && constant_of(c) == 0; };
  return (a.code == TUTTI_X_INPUT && zero(b)) || (b.code == TUTTI_X_INPUT && zero(a));
}

std::optional<Bounds> bounds_of(const Node& n) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (n.inputs.size() != 1 || n.results.size() != 1) return {};
  Bounds limits{-infinity, infinity};
  uint32_t value = TUTTI_NONE;
  for (uint32_t k = 0; k < n.expr.size(); ++k) {
    const TuttiInstr& i = n.expr[k];
    if (i.code == TUTTI_X_CONST || (i.code == TUTTI_X_RESULT && i.a == value)) continue;
    if (i.code == TUTTI_X_INPUT && value == TUTTI_NONE) {
      value = k;
      continue;
    }
    if ((i.code != TUTTI_X_MAX && i.code != TUTTI_X_MIN) || (i.a != value) == (i.b != value)) return {};
    const TuttiInstr& other = n.expr[i.a == value ? i.b : i.a];
    if (other.code != TUTTI_X_CONST) return {};
    auto limit = [&, bound = constant_of(other)](double x) {
      return i.code == TUTTI_X_MAX ? std::max(x, bound) : std::min(x, bound);
    };
    limits = {limit(limits.low), limit(limits.high)};
    value = k;
  }
  bool limited = limits.low > -infinity || limits.high < infinity;
  return limited && limits.low <= limits.high ? std::optional(limits) : std::nullopt;
}

bool is_tanh_gelu(const Node& n) {
  auto tanh = [](const TuttiInstr& i) { return i.code == TUTTI_X_TANH; };
  return n.op == "gelu" && n.inputs.size() == 1 && n.results.size() == 1 &&
         std::any_of(n.expr.begin(), n.expr.end(), tanh);
}

bool is_bias(const TensorType& bias, const TensorType& y, size_t from_last) {
  if (bias.dtype != y.dtype || bias.shape.size() <= from_last || bias.shape.size() > y.shape.size()) return false;
  int64_t size = y.shape[y.shape.size() - 1 - from_last];
  return bias.shape[bias.shape.size() - 1 - from_last] == size && num_elements(bias.shape) == size;
}

OperandSum summed_operand(const Program& program, const Node& product, const Node& sum) {
  if (product.inputs.size() != 2 || sum.op != "sum" || sum.inputs.size() != 1 || !sum.attrs.has("axes"))
    return OperandSum::none;
  uint32_t x = sum.inputs[0];
  size_t rank = program.type(x).shape.size();
  std::vector<int64_t> axes = normalize_axes(sum.attrs.ints("axes"), rank);
  if (product.op == "conv2d_dw")
    return x == product.inputs[1] && axes == std::vector<int64_t>{0, 2, 3} ? OperandSum::b : OperandSum::none;
  if (product.op != "matmul") return OperandSum::none;
  for (uint32_t v : product.inputs)
    if (program.type(v).shape.size() != 2) return OperandSum::none;
  if (x == product.inputs[0] && axes == std::vector<int64_t>{product.attrs.i("ta") ? 0 : 1}) return OperandSum::a;
  if (x == product.inputs[1] && axes == std::vector<int64_t>{product.attrs.i("tb") ? 1 : 0}) return OperandSum::b;
  return OperandSum::none;
}

}  // namespace tutti::sdk
