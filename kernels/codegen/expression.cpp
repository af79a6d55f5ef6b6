#include "kernels/codegen/expression.h"

#include <fmt/format.h>

#include "core/base/instr.h"
#include "core/base/status.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {
namespace {

using instr::constant_of;
using instr::operand_count;

/// fmt::format with a run-time format string.
template <class... Args>
std::string form(const char* text, const Args&... args) {
  return fmt::format(fmt::runtime(text), args...);
}

const char* c_type(DType t) { return register_type(element_of(t)); }

/// Writes the right-hand side of instructions.
class Writer {
 public:
  Writer(const Target& t, bool exact) : t_(t), l_(*t.language), exact_(exact) {}

  std::string write(uint16_t code, DType to, DType from, const std::string& a, const std::string& b,
                    const std::string& c) const {
    if (code == TUTTI_X_CAST) return cast(to, from, a);
    if (code == instr::round) return round(to, a);
    if (code == TUTTI_X_SELECT)  // lavapipe turns c ? -1 : 0 into a negated conversion, which gives -0
      return form(exact_ && l_.loose_floats && is_float(to) ? "pick_({}, {}, {})" : "{} ? {} : {}", a, b, c);
    if (code == TUTTI_X_LESS || code == TUTTI_X_LESS_EQUAL || code == TUTTI_X_EQUAL) return compare(code, from, a, b);
    std::string x = from == DType::boolean ? logical(code, a, b)
                    : is_float(from)       ? real(code, a, b)
                                           : whole(code, from, a, b);
    return exact_ && is_narrow(to) ? round(to, x) : x;
  }

 private:
  static std::string compare(uint16_t code, DType t, const std::string& a, const std::string& b) {
    const char* op = code == TUTTI_X_LESS ? "<" : code == TUTTI_X_LESS_EQUAL ? "<=" : "==";
    if (t == DType::boolean && code != TUTTI_X_EQUAL) return fmt::format("U32({}) {} U32({})", a, op, b);
    return fmt::format("{} {} {}", a, op, b);
  }

  std::string round(DType t, const std::string& a) const {
    return is_narrow(t) ? decode(element_of(t), encode(element_of(t), a)) : a;
  }

  std::string cast(DType to, DType from, const std::string& a) const {
    if (from == DType::boolean && to != DType::boolean) {
      const char* one = is_float(to) ? "1.0f : 0.0f" : to == DType::i32 ? "1 : 0" : "1u : 0u";
      return fmt::format("{} ? {}", a, one);
    }
    if (is_float(to)) return round(to, is_float(from) ? a : fmt::format("F32({})", a));
    switch (to) {
      case DType::boolean:
        if (is_float(from)) return apply(l_.unequal, a, "0.0f");
        return from == DType::boolean ? a : fmt::format("{} != {}", a, from == DType::i32 ? "0" : "0u");
      case DType::i32:
        if (is_float(from)) return fmt::format("to_i32_({})", a);
        return from == DType::u32 ? fmt::format("{0} > 2147483647u ? 2147483647 : I32({0})", a)
                                  : fmt::format("I32({})", a);
      case DType::u32:
        if (is_float(from)) return fmt::format("to_u32_({})", a);
        return from == DType::i32 ? fmt::format("{0} < 0 ? 0u : U32({0})", a) : a;
      default:  // u8
        if (is_float(from)) return fmt::format("to_u8_({})", a);
        if (from == DType::i32) return fmt::format("{0} < 0 ? 0u : {0} > 255 ? 255u : U32({0})", a);
        return from == DType::u32 ? fmt::format("{0} > 255u ? 255u : {0}", a) : a;
    }
  }

  static std::string logical(uint16_t code, const std::string& a, const std::string& b) {
    switch (code) {
      case TUTTI_X_NOT: return "!" + a;
      case TUTTI_X_AND:
      case TUTTI_X_MUL:
      case TUTTI_X_MIN: return fmt::format("{} && {}", a, b);
      case TUTTI_X_OR:
      case TUTTI_X_ADD:
      case TUTTI_X_MAX: return fmt::format("{} || {}", a, b);
      case TUTTI_X_XOR:
      case TUTTI_X_SUB: return fmt::format("{} != {}", a, b);
      case TUTTI_X_NEG:
      case TUTTI_X_ABS: return a;
      default: throw Error(Code::declined, fmt::format("instruction {} on bool", code));
    }
  }

  static std::string whole(uint16_t code, DType t, const std::string& a, const std::string& b) {
    bool i = t == DType::i32;
    auto wrapped = [&](const char* op) {
      if (i) return fmt::format("I32(U32({}) {} U32({}))", a, op, b);
      return form(t == DType::u8 ? "({} {} {}) & 255u" : "{} {} {}", a, op, b);
    };
    switch (code) {
      case TUTTI_X_ADD: return wrapped("+");
      case TUTTI_X_SUB: return wrapped("-");
      case TUTTI_X_MUL: return wrapped("*");
      case TUTTI_X_DIV:  // rounds toward zero; 0 for division by zero
        if (i)
          return fmt::format("{1} == 0 ? 0 : {1} == -1 ? I32(0u - U32({0})) : {0} / ({1} == 0 || {1} == -1 ? 1 : {1})",
                             a, b);
        return fmt::format("{1} == 0u ? 0u : {0} / ({1} == 0u ? 1u : {1})", a, b);
      case TUTTI_X_NEG:
        return i ? fmt::format("I32(0u - U32({}))", a) : form(t == DType::u8 ? "(0u - {}) & 255u" : "0u - {}", a);
      case TUTTI_X_ABS: return i ? fmt::format("{0} < 0 ? I32(0u - U32({0})) : {0}", a) : a;
      case TUTTI_X_MIN: return fmt::format("{0} < {1} ? {0} : {1}", a, b);
      case TUTTI_X_MAX: return fmt::format("{0} > {1} ? {0} : {1}", a, b);
      case TUTTI_X_FLOOR: return a;
      case TUTTI_X_AND: return fmt::format("{} & {}", a, b);
      case TUTTI_X_OR: return fmt::format("{} | {}", a, b);
      case TUTTI_X_XOR: return fmt::format("{} ^ {}", a, b);
      case TUTTI_X_SHL:
        if (i) return fmt::format("I32(U32({}) << (U32({}) & 31u))", a, b);
        return form(t == DType::u8 ? "({} << ({} & 31u)) & 255u" : "{} << ({} & 31u)", a, b);
      case TUTTI_X_SHR: return form(i ? "{} >> I32(U32({}) & 31u)" : "{} >> (U32({}) & 31u)", a, b);
      default: throw Error(Code::declined, fmt::format("instruction {} on {}", code, name(t)));
    }
  }

  std::string call(const char* name, const std::string& a, bool own) const {
    if (own) return fmt::format("{}_({})", name, a);
    return function(name, a);
  }

  std::string function(const char* name, const std::string& arguments) const {
    return fill(l_.function, {{"name", name}, {"arguments", arguments}});
  }

  /// Fills in a form with two operands.
  static std::string apply(const std::string& op, const std::string& a, const std::string& b) {
    return fill(op, {{"a", a}, {"b", b}});
  }

  std::string divide(const std::string& a, const std::string& b) const {
    return exact_ && !t_.rounded_division ? apply(l_.divide, a, b) : fmt::format("{} / {}", a, b);
  }
  std::string root(const std::string& a) const {
    if (!exact_ || t_.rounded_division) return call("sqrt", a, false);
    return fill(l_.root, {{"a", a}});
  }

  std::string real(uint16_t code, const std::string& a, const std::string& b) const {
    // Uses math.k if the language's function is missing or inaccurate, if the CPU compiler must vectorize, or for exact
    // results.
    bool slow = exact_ || l_.own_functions, own = slow || (t_.cpu_like && l_.float16());
    auto basic = [&](const char* op, const std::string& exactly) {
      return exact_ ? apply(exactly, a, b) : fmt::format("{} {} {}", a, op, b);
    };
    switch (code) {
      case TUTTI_X_ADD: return basic("+", l_.add);
      case TUTTI_X_SUB:  // lavapipe simplifies x - x and x * 0 to 0, even if precise
        if (l_.loose_floats && a == b) return fmt::format("minus_itself_({})", a);
        return basic("-", l_.subtract);
      case TUTTI_X_MUL:
        if (l_.loose_floats && zero(b)) return fmt::format("times_zero_({})", a);
        if (l_.loose_floats && zero(a)) return fmt::format("times_zero_({})", b);
        return basic("*", l_.multiply);
      case TUTTI_X_DIV: return divide(a, b);
      case TUTTI_X_NEG: return "-" + a;
      case TUTTI_X_ABS: return fmt::format("AS_F32(AS_U32({}) & 0x7fffffffu)", a);
      case TUTTI_X_MIN: return fmt::format("min_({}, {})", a, b);
      case TUTTI_X_MAX: return fmt::format("max_({}, {})", a, b);
      case TUTTI_X_SQRT: return root(a);
      case TUTTI_X_RSQRT: return divide("1.0f", root(a));
      case TUTTI_X_EXP: return call("exp", a, own);
      case TUTTI_X_EXPM1: return call("expm1", a, own);
      case TUTTI_X_LOG: return call("log", a, own);
      case TUTTI_X_LOG1P: return call("log1p", a, own);
      case TUTTI_X_TANH: return call("tanh", a, own);
      case TUTTI_X_ERF: return call("erf", a, own);
      case TUTTI_X_SIN: return own ? fmt::format("turn_({}, 0u)", a) : call("sin", a, false);
      case TUTTI_X_COS: return own ? fmt::format("turn_({}, 1u)", a) : call("cos", a, false);
      case TUTTI_X_POW: return call("pow", fmt::format("{}, {}", a, b), own);
      case TUTTI_X_FMOD: return call("fmod", fmt::format("{}, {}", a, b), true);  // drivers' versions are inexact
      case TUTTI_X_FLOOR: return call("floor", a, slow);
      default: throw Error(Code::declined, fmt::format("instruction {} on a float", code));
    }
  }

  bool zero(const std::string& operand) const { return operand == float_literal(l_, 0.0f); }

  const Target& t_;
  const Language& l_;
  bool exact_;
};

}  // namespace

std::string literal(const Language& language, DType t, double x) {
  x = round_to(t, x);
  switch (t) {
    case DType::boolean: return x != 0 ? "true" : "false";
    case DType::i32:
      return x == -2147483648.0 ? "(-2147483647 - 1)"
             : x < 0            ? fmt::format("({})", static_cast<int64_t>(x))
                                : std::to_string(static_cast<int64_t>(x));
    case DType::u32:
    case DType::u8: return fmt::format("{}u", static_cast<uint32_t>(x));
    default: return float_literal(language, static_cast<float>(x));
  }
}

std::string declines(std::span<const TuttiInstr> code) {
  try {
    const Target any;  // the set of instructions does not depend on the target
    Writer writer(any, true);
    for (const TuttiInstr& i : code) {
      auto t = static_cast<DType>(i.dtype);
      element_of(t);
      if (i.code <= TUTTI_X_RESULT) continue;
      if (i.code >= instr::count && i.code != instr::round) return "instruction " + std::to_string(i.code);
      DType from = static_cast<DType>(code[i.code == TUTTI_X_SELECT ? i.b : i.a].dtype);
      writer.write(i.code, t, from, "a", "b", "c");
    }
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

Statements statements(const Target& target, std::span<const TuttiInstr> code,
                      const std::vector<std::vector<std::string>>& inputs, size_t results, bool exact,
                      const std::string& prefix) {
  Statements s;
  s.results.resize(results);
  size_t lanes = 1;
  for (auto& x : inputs) lanes = std::max(lanes, x.size());
  Writer writer(target, exact);
  // Name of each instruction's result per lane; instructions without varying operands are computed once.
  std::vector<std::vector<std::string>> names(code.size());
  std::vector<bool> rounded(code.size());  // to its 16-bit type: rounding it again changes nothing
  for (size_t k = 0; k < code.size(); ++k) {
    const TuttiInstr& i = code[k];
    auto t = static_cast<DType>(i.dtype);
    bool rounds = (i.code == TUTTI_X_CAST || i.code == instr::round) && is_narrow(t);
    if (rounds && rounded[i.a] && code[i.a].dtype == i.dtype) {
      names[k] = names[i.a];
      rounded[k] = true;
      continue;
    }
    rounded[k] = rounds;
    if (i.code == TUTTI_X_INPUT) {
      names[k] = inputs[i.a];
      continue;
    }
    if (i.code == TUTTI_X_CONST) {
      // 16-bit floats are computed in f32, including their constants.
      names[k] = {literal(*target.language, is_narrow(t) && !exact ? DType::f32 : t, constant_of(i))};
      continue;
    }
    if (i.code == TUTTI_X_RESULT) {
      s.results[i.b] = names[i.a];
      continue;
    }
    int count = operand_count(i.code);
    size_t width = names[i.a].size();
    if (count > 1) width = std::max(width, names[i.b].size());
    if (count > 2) width = std::max(width, names[i.c].size());
    auto from = static_cast<DType>(code[i.code == TUTTI_X_SELECT ? i.b : i.a].dtype);
    // Without `precise`, GLSL compilers simplify x * 0 to 0 and a * b + a * c to a * (b + c) for any a and x.
    const char* precise = (exact || target.language->loose_floats) && is_float(t) ? "PRECISE " : "";
    for (size_t lane = 0; lane < width; ++lane) {
      auto operand = [&](uint32_t at) { return names[at].size() == 1 ? names[at][0] : names[at][lane]; };
      std::string a = operand(i.a), b = count > 1 ? operand(i.b) : "", c = count > 2 ? operand(i.c) : "";
      std::string v = width == 1 ? fmt::format("{}{}", prefix, k) : fmt::format("{}{}_{}", prefix, k, lane);
      s.text += fmt::format("  {}{} {} = {};\n", precise, c_type(t), v, writer.write(i.code, t, from, a, b, c));
      names[k].push_back(v);
    }
  }
  return s;
}

}  // namespace tutti::codegen
