// setp: comparisons. Those of floats are false for NaN, those with a u (equ, ltu, …) are true.
#include "tests/softcuda/operations.h"

namespace tutti::softcuda {
namespace {

constexpr auto equal = [](auto a, auto b) { return a == b; };
constexpr auto unequal = [](auto a, auto b) { return a != b; };
constexpr auto less = [](auto a, auto b) { return a < b; };
constexpr auto at_most = [](auto a, auto b) { return a <= b; };
constexpr auto greater = [](auto a, auto b) { return a > b; };
constexpr auto at_least = [](auto a, auto b) { return a >= b; };
constexpr auto ordered_unequal = [](auto a, auto b) { return a < b || a > b; };
constexpr auto equal_or_nan = [](auto a, auto b) { return !(a < b || a > b); };
constexpr auto less_or_nan = [](auto a, auto b) { return !(a >= b); };
constexpr auto at_most_or_nan = [](auto a, auto b) { return !(a > b); };
constexpr auto greater_or_nan = [](auto a, auto b) { return !(a <= b); };
constexpr auto at_least_or_nan = [](auto a, auto b) { return !(a < b); };
constexpr auto both_numbers = [](auto a, auto b) { return a == a && b == b; };
constexpr auto any_nan = [](auto a, auto b) { return a != a || b != b; };

template <class T, auto f>
void add(Opcodes& table, const std::string& relation, const std::string& t) {
  table["setp." + relation + "." + t] = make_binary<bool, T, T, f>();
}

template <class T>
void add_order(Opcodes& table, const std::string& t) {
  add<T, equal>(table, "eq", t);
  add<T, less>(table, "lt", t);
  add<T, at_most>(table, "le", t);
  add<T, greater>(table, "gt", t);
  add<T, at_least>(table, "ge", t);
}

template <class T>
void add_integers(Opcodes& table, const std::string& t) {
  add_order<T>(table, t);
  add<T, unequal>(table, "ne", t);
}

template <class T>
void add_floats(Opcodes& table, const std::string& t) {
  add_order<T>(table, t);
  add<T, ordered_unequal>(table, "ne", t);
  add<T, equal_or_nan>(table, "equ", t);
  add<T, unequal>(table, "neu", t);
  add<T, less_or_nan>(table, "ltu", t);
  add<T, at_most_or_nan>(table, "leu", t);
  add<T, greater_or_nan>(table, "gtu", t);
  add<T, at_least_or_nan>(table, "geu", t);
  add<T, both_numbers>(table, "num", t);
  add<T, any_nan>(table, "nan", t);
}

}  // namespace

void add_comparisons(Opcodes& table) {
  for (const char* kind : {"u16", "b16"}) add_integers<uint16_t>(table, kind);
  for (const char* kind : {"u32", "b32"}) add_integers<uint32_t>(table, kind);
  for (const char* kind : {"u64", "b64"}) add_integers<uint64_t>(table, kind);
  add_integers<int16_t>(table, "s16");
  add_integers<int32_t>(table, "s32");
  add_integers<int64_t>(table, "s64");
  add_floats<float>(table, "f32");
  add_floats<double>(table, "f64");
}

}  // namespace tutti::softcuda
