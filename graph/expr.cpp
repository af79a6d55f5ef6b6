#include "graph/expr.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "core/base/instr.h"
#include "core/base/status.h"

namespace tutti {
namespace {

constexpr std::string_view names[] = {
    "input",      "const", "result", "add", "sub",   "mul",  "div", "neg", "abs",    "min",  "max",   "sqrt",
    "rsqrt",      "exp",   "expm1",  "log", "log1p", "tanh", "erf", "sin", "cos",    "pow",  "floor", "less",
    "less_equal", "equal", "not",    "and", "or",    "xor",  "shl", "shr", "select", "cast", "fmod"};
static_assert(std::size(names) == instr::count);

}  // namespace

double constant_of(const TuttiInstr& instr) { return instr::constant_of(instr); }

std::string_view instr_name(uint16_t code) { return names[code]; }
int operand_count(uint16_t code) { return instr::operand_count(code); }

std::string to_string(const Expr& expr) {
  std::vector<std::string> texts, results;
  for (const TuttiInstr& i : expr.code) {
    std::string text;
    if (i.code == TUTTI_X_INPUT) {
      text = fmt::format("x{}", i.a);
    } else if (i.code == TUTTI_X_CONST) {
      text = fmt::format("{}", constant_of(i));
    } else if (i.code == TUTTI_X_RESULT) {
      results.push_back(texts[i.a]);
    } else {
      text = fmt::format("{}({}", instr_name(i.code), texts[i.a]);
      if (operand_count(i.code) > 1) text += ", " + texts[i.b];
      if (operand_count(i.code) > 2) text += ", " + texts[i.c];
      if (i.code == TUTTI_X_CAST) text += fmt::format(", {}", name(static_cast<DType>(i.dtype)));
      text += ")";
    }
    texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(results, ", "));
}

DType Ex::dtype() const { return builder_->dtype(at_); }
Ex Ex::like(double x) const { return builder_->constant(x, dtype()); }

Ex ExprBuilder::add(TuttiInstr in) {
  for (uint32_t i = 0; i < code_.size(); ++i) {
    const TuttiInstr& o = code_[i];
    if (o.code == in.code && o.dtype == in.dtype && o.a == in.a && o.b == in.b && o.c == in.c) return {this, i};
  }
  code_.push_back(in);
  return {this, static_cast<uint32_t>(code_.size() - 1)};
}

Ex ExprBuilder::input(uint32_t number, DType t) { return add({TUTTI_X_INPUT, static_cast<uint16_t>(t), number, 0, 0}); }

Ex ExprBuilder::constant(double x, DType t) {
  auto bits = std::bit_cast<uint64_t>(x);
  return add(
      {TUTTI_X_CONST, static_cast<uint16_t>(t), static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32), 0});
}

Ex ExprBuilder::emit(uint16_t code, DType t, Ex a) { return add({code, static_cast<uint16_t>(t), a.at(), 0, 0}); }

Ex ExprBuilder::emit(uint16_t code, DType t, Ex a, Ex b) {
  if (a.dtype() != b.dtype())
    throw invalid(fmt::format("{} of {} and {}: the operands must have the same dtype", instr_name(code),
                              name(a.dtype()), name(b.dtype())),
                  "cast one of the operands");
  return add({code, static_cast<uint16_t>(t), a.at(), b.at(), 0});
}

Ex ExprBuilder::emit(uint16_t code, DType t, Ex a, Ex b, Ex c) {
  if (a.dtype() != DType::boolean)
    throw invalid(fmt::format("{}: the condition is {}, not bool", instr_name(code), name(a.dtype())));
  if (b.dtype() != c.dtype())
    throw invalid(fmt::format("{} between {} and {}: the operands must have the same dtype", instr_name(code),
                              name(b.dtype()), name(c.dtype())),
                  "cast one of the operands");
  return add({code, static_cast<uint16_t>(t), a.at(), b.at(), c.at()});
}

Expr ExprBuilder::finish(const Exs& results) {
  Expr e{code_, {}};
  for (uint32_t i = 0; i < results.size(); ++i) {
    e.code.push_back({TUTTI_X_RESULT, static_cast<uint16_t>(results[i].dtype()), results[i].at(), i, 0});
    e.results.push_back(results[i].dtype());
  }
  return e;
}

namespace {
Ex unary(uint16_t code, Ex a) { return a.builder().emit(code, a.dtype(), a); }
Ex binary(uint16_t code, Ex a, Ex b) { return a.builder().emit(code, a.dtype(), a, b); }
Ex compare(uint16_t code, Ex a, Ex b) { return a.builder().emit(code, DType::boolean, a, b); }
}  // namespace

Ex operator+(Ex a, Ex b) { return binary(TUTTI_X_ADD, a, b); }
Ex operator-(Ex a, Ex b) { return binary(TUTTI_X_SUB, a, b); }
Ex operator*(Ex a, Ex b) { return binary(TUTTI_X_MUL, a, b); }
Ex operator/(Ex a, Ex b) { return binary(TUTTI_X_DIV, a, b); }
Ex operator-(Ex a) { return unary(TUTTI_X_NEG, a); }
Ex operator<(Ex a, Ex b) { return compare(TUTTI_X_LESS, a, b); }
Ex operator<=(Ex a, Ex b) { return compare(TUTTI_X_LESS_EQUAL, a, b); }
Ex operator!(Ex a) { return unary(TUTTI_X_NOT, a); }
Ex operator&(Ex a, Ex b) { return binary(TUTTI_X_AND, a, b); }
Ex operator|(Ex a, Ex b) { return binary(TUTTI_X_OR, a, b); }
Ex operator^(Ex a, Ex b) { return binary(TUTTI_X_XOR, a, b); }
Ex operator<<(Ex a, Ex b) { return binary(TUTTI_X_SHL, a, b); }
Ex operator>>(Ex a, Ex b) { return binary(TUTTI_X_SHR, a, b); }
Ex equal(Ex a, Ex b) { return compare(TUTTI_X_EQUAL, a, b); }
Ex abs(Ex a) { return unary(TUTTI_X_ABS, a); }
Ex min(Ex a, Ex b) { return binary(TUTTI_X_MIN, a, b); }
Ex max(Ex a, Ex b) { return binary(TUTTI_X_MAX, a, b); }
Ex sqrt(Ex a) { return unary(TUTTI_X_SQRT, a); }
Ex rsqrt(Ex a) { return unary(TUTTI_X_RSQRT, a); }
Ex exp(Ex a) { return unary(TUTTI_X_EXP, a); }
Ex expm1(Ex a) { return unary(TUTTI_X_EXPM1, a); }
Ex log(Ex a) { return unary(TUTTI_X_LOG, a); }
Ex log1p(Ex a) { return unary(TUTTI_X_LOG1P, a); }
Ex tanh(Ex a) { return unary(TUTTI_X_TANH, a); }
Ex erf(Ex a) { return unary(TUTTI_X_ERF, a); }
Ex sin(Ex a) { return unary(TUTTI_X_SIN, a); }
Ex cos(Ex a) { return unary(TUTTI_X_COS, a); }
Ex pow(Ex a, Ex b) { return binary(TUTTI_X_POW, a, b); }
Ex fmod(Ex a, Ex b) { return binary(TUTTI_X_FMOD, a, b); }
Ex floor(Ex a) { return unary(TUTTI_X_FLOOR, a); }
Ex select(Ex condition, Ex yes, Ex no) {
  return condition.builder().emit(TUTTI_X_SELECT, yes.dtype(), condition, yes, no);
}
Ex cast(Ex a, DType t) { return a.dtype() == t ? a : a.builder().emit(TUTTI_X_CAST, t, a); }

}  // namespace tutti
