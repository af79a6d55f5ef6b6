// Bits, selections and moves.
#include "tests/softcuda/operations.h"

namespace tutti::softcuda {
namespace {

constexpr auto both = [](auto a, auto b) { return a & b; };
constexpr auto either = [](auto a, auto b) { return a | b; };
constexpr auto different = [](auto a, auto b) { return a ^ b; };
constexpr auto inverse = [](auto a) { return ~a; };
constexpr auto untrue = [](bool a) { return !a; };
constexpr auto itself = [](auto a) { return a; };
constexpr auto choice = [](auto a, auto b, bool which) { return which ? a : b; };

// Shifts by more than the width give what is left after all bits have gone.
template <class T>
constexpr auto shift_left = [](T a, uint32_t n) { return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << n); };
template <class T>
constexpr auto shift_right = [](T a, uint32_t n) {
  constexpr uint32_t most = 8 * sizeof(T) - 1;
  if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> (n > most ? most : n));
  return n > most ? T{0} : static_cast<T>(a >> n);
};

template <class T>
void add_bits(Opcodes& table, const std::string& t) {
  table["and." + t] = make_binary<T, T, T, both>();
  table["or." + t] = make_binary<T, T, T, either>();
  table["xor." + t] = make_binary<T, T, T, different>();
}
template <class U, class S>
void add_words(Opcodes& table, const std::string& bits) {
  add_bits<U>(table, "b" + bits);
  table["not.b" + bits] = make_unary<U, U, inverse>();
  table["shl.b" + bits] = make_binary<U, U, uint32_t, shift_left<U>>();
  for (const char* kind : {"b", "u"}) table["shr." + (kind + bits)] = make_binary<U, U, uint32_t, shift_right<U>>();
  table["shr.s" + bits] = make_binary<S, S, uint32_t, shift_right<S>>();
  for (const char* kind : {"b", "u", "s"}) {
    table["mov." + (kind + bits)] = make_unary<U, U, itself>();
    table["selp." + (kind + bits)] = make_ternary<U, U, U, bool, choice>();
  }
}
template <class T>
void add_float_moves(Opcodes& table, const std::string& t) {
  table["mov." + t] = make_unary<T, T, itself>();
  table["selp." + t] = make_ternary<T, T, T, bool, choice>();
}

/// The field of `length` bits at `at` of b is replaced by the low bits of a.
template <class T>
void bit_field_insert(Warp& w, const Instruction& i) {
  In<T> a(w, i.a), b(w, i.b);
  In<uint32_t> at(w, i.c), length(w, i.e);
  constexpr uint32_t width = 8 * sizeof(T);
  write<T>(w, i.d, [&](int l) {
    uint32_t from = at[l] & 255, n = length[l] & 255;
    T field = n >= width ? ~T{0} : (T{1} << n) - 1;
    T mask = from >= width ? 0 : static_cast<T>(field << from);
    T moved = from >= width ? 0 : static_cast<T>(a[l] << from);
    return static_cast<T>((moved & mask) | (b[l] & ~mask));
  });
}

/// Each byte of the result is one of the eight bytes of b:a, or eight times its sign.
constexpr auto permute = [](uint32_t a, uint32_t b, uint32_t selection) {
  uint64_t bytes = a | static_cast<uint64_t>(b) << 32;
  uint32_t result = 0;
  for (unsigned k = 0; k < 4; ++k) {
    uint32_t which = selection >> 4 * k & 15, byte = static_cast<uint32_t>(bytes >> 8 * (which & 7)) & 255;
    if (which & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * k;
  }
  return result;
};

/// 32 bits of b:a, from bit n (mod 32) of the low or high word on.
constexpr auto funnel_left = [](uint32_t a, uint32_t b, uint32_t n) {
  return static_cast<uint32_t>((static_cast<uint64_t>(b) << 32 | a) << (n & 31) >> 32);
};
constexpr auto funnel_right = [](uint32_t a, uint32_t b, uint32_t n) {
  return static_cast<uint32_t>((static_cast<uint64_t>(b) << 32 | a) >> (n & 31));
};

}  // namespace

void pack_halves(Warp& w, const Instruction& i) {
  In<uint32_t> low(w, i.data[0]), high(w, i.data[1]);
  write<uint32_t>(w, i.d, [&](int l) { return (low[l] & 0xffff) | high[l] << 16; });
}

void unpack_halves(Warp& w, const Instruction& i) {
  In<uint32_t> from(w, i.a);
  std::array<uint32_t, lanes> whole;  // the source may be one of the results
  for (int l = 0; l < lanes; ++l) whole[static_cast<size_t>(l)] = from[l];
  write<uint32_t>(w, i.data[0], [&](int l) { return whole[static_cast<size_t>(l)] & 0xffff; });
  write<uint32_t>(w, i.data[1], [&](int l) { return whole[static_cast<size_t>(l)] >> 16; });
}

void add_logic(Opcodes& table) {
  add_words<uint16_t, int16_t>(table, "16");
  add_words<uint32_t, int32_t>(table, "32");
  add_words<uint64_t, int64_t>(table, "64");
  add_bits<bool>(table, "pred");
  add_float_moves<float>(table, "f32");
  add_float_moves<double>(table, "f64");
  table["mov.pred"] = make_unary<bool, bool, itself>();
  table["not.pred"] = make_unary<bool, bool, untrue>();
  // Addresses of all spaces lie in windows of one range.
  name(table, make_unary<uint64_t, uint64_t, itself>(),
       {"cvta.to.global.u64", "cvta.global.u64", "cvta.to.local.u64", "cvta.local.u64"});
  for (Type t : {Type::b32, Type::b64})
    table[is_wide(t) ? "bfi.b64" : "bfi.b32"] = {is_wide(t) ? bit_field_insert<uint64_t> : bit_field_insert<uint32_t>,
                                                 {t, t, t, Type::u32, Type::u32}};
  table["prmt.b32"] = make_ternary<uint32_t, uint32_t, uint32_t, uint32_t, permute>();
  table["shf.l.wrap.b32"] = make_ternary<uint32_t, uint32_t, uint32_t, uint32_t, funnel_left>();
  table["shf.r.wrap.b32"] = make_ternary<uint32_t, uint32_t, uint32_t, uint32_t, funnel_right>();
}

}  // namespace tutti::softcuda
