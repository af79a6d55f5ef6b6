#include "data/files/gguf_types.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/dtype.h"

namespace tutti {
namespace {

template <class T>
T load(const std::byte* from) {
  T x;
  std::memcpy(&x, from, sizeof(T));
  return x;
}

float half(const std::byte* from) { return f16_to_f32(load<uint16_t>(from)); }

constexpr size_t block_size = 32;

void from_f32(const std::byte* from, size_t count, float* to) {
  if (count > 0) std::memcpy(to, from, count * sizeof(float));
}

void from_f16(const std::byte* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = half(from + 2 * i);
}

void from_bf16(const std::byte* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = bf16_to_f32(load<uint16_t>(from + 2 * i));
}

/// q8_0: f16 scale d, 32 signed bytes q; x = d q.
void from_q8_0(const std::byte* from, size_t count, float* to) {
  for (size_t b = 0; b < count; ++b, from += 2 + block_size, to += block_size) {
    float d = half(from);
    for (size_t j = 0; j < block_size; ++j) to[j] = d * static_cast<float>(load<int8_t>(from + 2 + j));
  }
}

/// Calls f(j, q) for the 32 nibbles of a block: byte j holds element j in its low nibble and element j + 16 in its high
/// one.
template <class F>
void each_nibble(const std::byte* from, F f) {
  for (size_t j = 0; j < block_size / 2; ++j) {
    auto both = std::to_integer<int>(from[j]);
    f(j, static_cast<float>(both & 15));
    f(j + block_size / 2, static_cast<float>(both >> 4));
  }
}

/// q4_0: f16 scale d, nibbles q; x = d (q - 8).
void from_q4_0(const std::byte* from, size_t count, float* to) {
  for (size_t b = 0; b < count; ++b, from += 2 + block_size / 2, to += block_size) {
    float d = half(from);
    each_nibble(from + 2, [&](size_t j, float q) { to[j] = d * (q - 8); });
  }
}

/// q4_1: f16 scale d, f16 minimum m, nibbles q; x = d q + m.
void from_q4_1(const std::byte* from, size_t count, float* to) {
  for (size_t b = 0; b < count; ++b, from += 4 + block_size / 2, to += block_size) {
    float d = half(from), m = half(from + 2);
    each_nibble(from + 4, [&](size_t j, float q) { to[j] = d * q + m; });
  }
}

// The same blocks as quants >= 0, a scale and a minimum, which is either a power of two times the scale or stored in
// the file.

/// Stores x as f16; returns whether that is exact.
bool holds(uint16_t& to, float x) {
  to = f32_to_f16(x);
  return f16_to_f32(to) == x;
}

bool quants_of_q8_0(const std::byte* from, size_t count, std::byte* quants, uint16_t* scales, uint16_t* mins) {
  for (size_t b = 0; b < count; ++b, from += 2 + block_size, quants += block_size) {
    scales[b] = load<uint16_t>(from);
    if (!holds(mins[b], -128 * half(from))) return false;
    for (size_t j = 0; j < block_size; ++j) quants[j] = static_cast<std::byte>(load<int8_t>(from + 2 + j) + 128);
  }
  return true;
}

bool quants_of_q4_0(const std::byte* from, size_t count, std::byte* quants, uint16_t* scales, uint16_t* mins) {
  for (size_t b = 0; b < count; ++b, from += 2 + block_size / 2, quants += block_size / 2) {
    scales[b] = load<uint16_t>(from);
    if (!holds(mins[b], -8 * half(from))) return false;
    std::memcpy(quants, from + 2, block_size / 2);
  }
  return true;
}

bool quants_of_q4_1(const std::byte* from, size_t count, std::byte* quants, uint16_t* scales, uint16_t* mins) {
  for (size_t b = 0; b < count; ++b, from += 4 + block_size / 2, quants += block_size / 2) {
    scales[b] = load<uint16_t>(from);
    mins[b] = load<uint16_t>(from + 2);
    std::memcpy(quants, from + 4, block_size / 2);
  }
  return true;
}

constexpr std::array types = {GgufType{0, "f32", 1, 4, from_f32},
                              GgufType{1, "f16", 1, 2, from_f16},
                              GgufType{2, "q4_0", 32, 18, from_q4_0, quants_of_q4_0, 4},
                              GgufType{3, "q4_1", 32, 20, from_q4_1, quants_of_q4_1, 4},
                              GgufType{6, "q5_0", 32, 22, nullptr},
                              GgufType{7, "q5_1", 32, 24, nullptr},
                              GgufType{8, "q8_0", 32, 34, from_q8_0, quants_of_q8_0, 8},
                              GgufType{10, "q2_k", 256, 84, nullptr},
                              GgufType{11, "q3_k", 256, 110, nullptr},
                              GgufType{12, "q4_k", 256, 144, nullptr},
                              GgufType{13, "q5_k", 256, 176, nullptr},
                              GgufType{14, "q6_k", 256, 210, nullptr},
                              GgufType{15, "q8_k", 256, 292, nullptr},
                              GgufType{16, "iq2_xxs", 256, 66, nullptr},
                              GgufType{17, "iq2_xs", 256, 74, nullptr},
                              GgufType{18, "iq3_xxs", 256, 98, nullptr},
                              GgufType{19, "iq1_s", 256, 50, nullptr},
                              GgufType{20, "iq4_nl", 32, 18, nullptr},
                              GgufType{21, "iq3_s", 256, 110, nullptr},
                              GgufType{22, "iq2_s", 256, 82, nullptr},
                              GgufType{23, "iq4_xs", 256, 136, nullptr},
                              GgufType{24, "i8", 1, 1, nullptr},
                              GgufType{25, "i16", 1, 2, nullptr},
                              GgufType{26, "i32", 1, 4, nullptr},
                              GgufType{27, "i64", 1, 8, nullptr},
                              GgufType{28, "f64", 1, 8, nullptr},
                              GgufType{29, "iq1_m", 256, 56, nullptr},
                              GgufType{30, "bf16", 1, 2, from_bf16},
                              GgufType{34, "tq1_0", 256, 54, nullptr},
                              GgufType{35, "tq2_0", 256, 66, nullptr},
                              GgufType{39, "mxfp4", 32, 17, nullptr},
                              GgufType{40, "nvfp4", 64, 36, nullptr},
                              GgufType{41, "q1_0", 128, 18, nullptr}};

}  // namespace

std::span<const GgufType> all_gguf_types() { return types; }

const GgufType* find_gguf_type(uint32_t number) {
  const auto* at = std::ranges::find(types, number, &GgufType::number);
  return at == types.end() ? nullptr : at;
}

std::string readable_gguf_types() {
  std::string list;
  for (const GgufType& t : types)
    if (t.to_floats) list += (list.empty() ? "" : ", ") + std::string(t.name);
  return list;
}

}  // namespace tutti
