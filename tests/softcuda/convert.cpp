// cvt between integers and floats.
#include <cmath>
#include <limits>

#include "tests/softcuda/operations.h"

namespace tutti::softcuda {
namespace {

template <class T>
T to_integral(T x, Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest: return std::nearbyint(x);
    case Rounding::zero: return std::trunc(x);
    case Rounding::down: return std::floor(x);
    case Rounding::up: return std::ceil(x);
    default: return x;
  }
}

/// Saturates. A NaN becomes 0 or, if either type has 64 bits, the highest bit alone.
template <class To, class From>
To to_integer(From x, Rounding rounding) {
  From whole = to_integral(x, rounding);
  if (whole != whole)
    return sizeof(From) == 8 || sizeof(To) == 8 ? static_cast<To>(uint64_t{1} << (8 * sizeof(To) - 1)) : To{0};
  constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;  // max + 1, exact
  if (whole >= above) return std::numeric_limits<To>::max();
  if (whole < static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return static_cast<To>(whole);
}

template <class To, class From>
void convert(Warp& w, const Instruction& i) {
  In<From> a(w, i.a);
  Rounding rounding = i.rounding;
  write<To>(w, i.d, [&](int l) {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
      return to_integer<To>(a[l], rounding);
    else if constexpr (std::is_floating_point_v<From> && std::is_same_v<From, To>)
      return to_integral(a[l], rounding);
    else
      return static_cast<To>(a[l]);
  });
}

std::string text_of(Type t) {
  static const char* const names[] = {"",    "pred", "b8", "b16", "b32", "b64", "u8",  "u16",
                                      "u32", "u64",  "s8", "s16", "s32", "s64", "f32", "f64"};
  return names[static_cast<size_t>(t)];
}

template <class To, class From>
void add(Opcodes& table) {
  auto put = [&](const std::string& mode, Rounding rounding) {
    table["cvt." + mode + text_of(type_of<To>()) + "." + text_of(type_of<From>())] = {
        convert<To, From>, {type_of<To>(), type_of<From>()}, rounding};
  };
  constexpr bool from_float = std::is_floating_point_v<From>, to_float = std::is_floating_point_v<To>;
  if constexpr (from_float && (!to_float || std::is_same_v<To, From>)) {
    put("rni.", Rounding::nearest);
    put("rzi.", Rounding::zero);
    put("rmi.", Rounding::down);
    put("rpi.", Rounding::up);
  } else if constexpr (to_float && !(std::is_same_v<From, float> && std::is_same_v<To, double>)) {
    put("rn.", Rounding::none);
  } else {
    put("", Rounding::none);
  }
}

template <class From>
void add_from(Opcodes& table) {
  add<uint8_t, From>(table);
  add<uint16_t, From>(table);
  add<uint32_t, From>(table);
  add<uint64_t, From>(table);
  add<int8_t, From>(table);
  add<int16_t, From>(table);
  add<int32_t, From>(table);
  add<int64_t, From>(table);
  add<float, From>(table);
  add<double, From>(table);
}

constexpr auto saturated = [](float a) { return a > 0 ? (a < 1 ? a : 1.0f) : 0.0f; };

}  // namespace

void add_conversions(Opcodes& table) {
  add_from<uint8_t>(table);
  add_from<uint16_t>(table);
  add_from<uint32_t>(table);
  add_from<uint64_t>(table);
  add_from<int8_t>(table);
  add_from<int16_t>(table);
  add_from<int32_t>(table);
  add_from<int64_t>(table);
  add_from<float>(table);
  add_from<double>(table);
  table["cvt.sat.f32.f32"] = make_unary<float, float, saturated>();
}

}  // namespace tutti::softcuda
