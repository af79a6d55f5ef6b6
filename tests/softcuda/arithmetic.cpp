// Sums, products, quotients. Integers wrap, so they are computed unsigned where the sign does not matter.
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/softcuda/operations.h"

namespace tutti::softcuda {
namespace {

constexpr auto plus = [](auto a, auto b) { return a + b; };
constexpr auto minus = [](auto a, auto b) { return a - b; };
constexpr auto times = [](auto a, auto b) { return a * b; };
constexpr auto over = [](auto a, auto b) { return a / b; };
constexpr auto negative = [](auto a) { return 0 - a; };
constexpr auto opposite = [](auto a) { return -a; };
constexpr auto wrapping_times = [](auto a, auto b) { return 1u * a * b; };  // uint16_t would become a signed int
constexpr auto multiply_add = [](auto a, auto b, auto c) { return 1u * a * b + c; };
constexpr auto fused32 = [](float a, float b, float c) { return __builtin_fmaf(a, b, c); };
constexpr auto fused64 = [](double a, double b, double c) { return __builtin_fma(a, b, c); };
constexpr auto smaller = [](auto a, auto b) { return b < a ? b : a; };
constexpr auto larger = [](auto a, auto b) { return a < b ? b : a; };
// PTX: a NaN loses against a number, and -0 is less than +0.
constexpr auto float_smaller = [](float a, float b) {
  return a == b ? (std::signbit(a) ? a : b) : a < b || b != b ? a : b;
};
constexpr auto float_larger = [](float a, float b) {
  return a == b ? (std::signbit(a) ? b : a) : a > b || b != b ? a : b;
};
// Of a division by zero the hardware makes all ones; the most negative number over -1 is itself.
template <class T>
constexpr auto quotient = [](T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  return static_cast<T>(a / b);
};
template <class T>
constexpr auto remainder = [](T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return T{0};
  return static_cast<T>(a % b);
};
template <class T, class Twice>
constexpr auto high_half =
    [](T a, T b) { return static_cast<T>((static_cast<Twice>(a) * static_cast<Twice>(b)) >> (8 * sizeof(T))); };
template <class Twice>
constexpr auto wide_product = [](auto a, auto b) { return static_cast<Twice>(a) * static_cast<Twice>(b); };
template <class Twice>
constexpr auto wide_multiply_add = [](auto a, auto b, auto c) {
  using Wrapping = std::make_unsigned_t<Twice>;
  return static_cast<Twice>(static_cast<Wrapping>(static_cast<Twice>(a) * static_cast<Twice>(b)) +
                            static_cast<Wrapping>(c));
};
constexpr auto absolute = [](int32_t a) { return a < 0 ? 0u - static_cast<uint32_t>(a) : static_cast<uint32_t>(a); };

/// An operation under another rounding mode than to nearest.
template <int mode, Handler handler>
void rounded(Warp& w, const Instruction& i) {
  std::fesetround(mode);
  handler(w, i);
  std::fesetround(FE_TONEAREST);
}
template <int mode, Handler handler>
Opcode with_rounding(Opcode opcode) {
  opcode.run = rounded<mode, handler>;
  return opcode;
}

template <class U, class S>
void add_wrapping(Opcodes& table, const std::string& u, const std::string& s) {
  for (const std::string& t : {u, s}) {
    table["add." + t] = make_binary<U, U, U, plus>();
    table["sub." + t] = make_binary<U, U, U, minus>();
    table["mul.lo." + t] = make_binary<U, U, U, wrapping_times>();
    table["mad.lo." + t] = make_ternary<U, U, U, U, multiply_add>();
  }
  table["neg." + s] = make_unary<U, U, negative>();
  table["div." + u] = make_binary<U, U, U, quotient<U>>();
  table["div." + s] = make_binary<S, S, S, quotient<S>>();
  table["rem." + u] = make_binary<U, U, U, remainder<U>>();
  table["rem." + s] = make_binary<S, S, S, remainder<S>>();
  table["min." + u] = make_binary<U, U, U, smaller>();
  table["min." + s] = make_binary<S, S, S, smaller>();
  table["max." + u] = make_binary<U, U, U, larger>();
  table["max." + s] = make_binary<S, S, S, larger>();
}

void add_wide(Opcodes& table) {
  table["mul.hi.u32"] = make_binary<uint32_t, uint32_t, uint32_t, high_half<uint32_t, uint64_t>>();
  table["mul.hi.s32"] = make_binary<int32_t, int32_t, int32_t, high_half<int32_t, int64_t>>();
  table["mul.wide.u16"] = make_binary<uint32_t, uint16_t, uint16_t, wide_product<uint32_t>>();
  table["mul.wide.s16"] = make_binary<int32_t, int16_t, int16_t, wide_product<int32_t>>();
  table["mul.wide.u32"] = make_binary<uint64_t, uint32_t, uint32_t, wide_product<uint64_t>>();
  table["mul.wide.s32"] = make_binary<int64_t, int32_t, int32_t, wide_product<int64_t>>();
  table["mad.wide.u32"] = make_ternary<uint64_t, uint32_t, uint32_t, uint64_t, wide_multiply_add<uint64_t>>();
  table["mad.wide.s32"] = make_ternary<int64_t, int32_t, int32_t, int64_t, wide_multiply_add<int64_t>>();
  table["abs.s32"] = make_unary<uint32_t, int32_t, absolute>();
}

template <class T, auto fused>
void add_floats(Opcodes& table, const std::string& t) {
  for (const char* form : {"", "rn."}) {
    table["add." + std::string(form) + t] = make_binary<T, T, T, plus>();
    table["sub." + std::string(form) + t] = make_binary<T, T, T, minus>();
    table["mul." + std::string(form) + t] = make_binary<T, T, T, times>();
  }
  table["div.rn." + t] = make_binary<T, T, T, over>();
  table["fma.rn." + t] = make_ternary<T, T, T, T, fused>();
  table["neg." + t] = make_unary<T, T, opposite>();
}

template <int mode>
void add_rounded(Opcodes& table, const std::string& r) {
  table["add." + r + ".f32"] =
      with_rounding<mode, binary<float, float, float, plus>>(make_binary<float, float, float, plus>());
  table["sub." + r + ".f32"] =
      with_rounding<mode, binary<float, float, float, minus>>(make_binary<float, float, float, minus>());
  table["mul." + r + ".f32"] =
      with_rounding<mode, binary<float, float, float, times>>(make_binary<float, float, float, times>());
  table["fma." + r + ".f32"] = with_rounding<mode, ternary<float, float, float, float, fused32>>(
      make_ternary<float, float, float, float, fused32>());
}

}  // namespace

void add_arithmetic(Opcodes& table) {
  add_wrapping<uint16_t, int16_t>(table, "u16", "s16");
  add_wrapping<uint32_t, int32_t>(table, "u32", "s32");
  add_wrapping<uint64_t, int64_t>(table, "u64", "s64");
  add_wide(table);
  add_floats<float, fused32>(table, "f32");
  add_floats<double, fused64>(table, "f64");
  add_rounded<FE_TOWARDZERO>(table, "rz");
  add_rounded<FE_DOWNWARD>(table, "rm");
  add_rounded<FE_UPWARD>(table, "rp");
  table["min.f32"] = make_binary<float, float, float, float_smaller>();
  table["max.f32"] = make_binary<float, float, float, float_larger>();
}

}  // namespace tutti::softcuda
