// Builders of handlers: one function per lane becomes an instruction of 32 lanes.
#pragma once
#include <initializer_list>
#include <string>

#include "tests/softcuda/decode.h"
#include "tests/softcuda/warp.h"

namespace tutti::softcuda {

template <class To, class A, auto f>
void unary(Warp& w, const Instruction& i) {
  In<A> a(w, i.a);
  write<To>(w, i.d, [&](int l) { return f(a[l]); });
}

template <class To, class A, class B, auto f>
void binary(Warp& w, const Instruction& i) {
  In<A> a(w, i.a);
  In<B> b(w, i.b);
  write<To>(w, i.d, [&](int l) { return f(a[l], b[l]); });
}

template <class To, class A, class B, class C, auto f>
void ternary(Warp& w, const Instruction& i) {
  In<A> a(w, i.a);
  In<B> b(w, i.b);
  In<C> c(w, i.c);
  write<To>(w, i.d, [&](int l) { return f(a[l], b[l], c[l]); });
}

template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, bool>) return Type::pred;
  if constexpr (std::is_same_v<T, uint8_t>) return Type::u8;
  if constexpr (std::is_same_v<T, uint16_t>) return Type::u16;
  if constexpr (std::is_same_v<T, uint32_t>) return Type::u32;
  if constexpr (std::is_same_v<T, uint64_t>) return Type::u64;
  if constexpr (std::is_same_v<T, int8_t>) return Type::s8;
  if constexpr (std::is_same_v<T, int16_t>) return Type::s16;
  if constexpr (std::is_same_v<T, int32_t>) return Type::s32;
  if constexpr (std::is_same_v<T, int64_t>) return Type::s64;
  if constexpr (std::is_same_v<T, float>) return Type::f32;
  if constexpr (std::is_same_v<T, double>) return Type::f64;
}

template <class To, class A, auto f>
Opcode make_unary() {
  return {unary<To, A, f>, {type_of<To>(), type_of<A>()}};
}
template <class To, class A, class B, auto f>
Opcode make_binary() {
  return {binary<To, A, B, f>, {type_of<To>(), type_of<A>(), type_of<B>()}};
}
template <class To, class A, class B, class C, auto f>
Opcode make_ternary() {
  return {ternary<To, A, B, C, f>, {type_of<To>(), type_of<A>(), type_of<B>(), type_of<C>()}};
}

/// The same operation under several names.
inline void name(Opcodes& table, const Opcode& opcode, std::initializer_list<const char*> names) {
  for (const char* n : names) table[n] = opcode;
}

}  // namespace tutti::softcuda
