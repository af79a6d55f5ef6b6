#include "data/files/gguf_blocks.h"

#include <cstring>

#include "core/base/dtype.h"

namespace tutti {
namespace {

int byte(const std::byte* from, size_t i) { return std::to_integer<int>(from[i]); }

float half(const std::byte* from) {
  uint16_t x;
  std::memcpy(&x, from, sizeof x);
  return f16_to_f32(x);
}

/// Sets quant i, given as its bits below and those above `shift`.
void set(GgufBlock& to, size_t i, int low, int high = 0, int shift = 0) {
  to.quants[i] = static_cast<uint8_t>(low | high << shift);
}

/// The one scale of a block of 32, and minus its minimum.
void set_units(GgufBlock& to, float scale, float min = 0) {
  to.scale_unit = scale;
  to.min_unit = min;
  to.scales[0] = to.mins[0] = 1;
}

/// Calls f(i, q) for the 32 nibbles of 16 bytes: byte j holds element j in its low nibble, element j + 16 in its high.
template <class F>
void each_nibble(const std::byte* from, F f) {
  for (size_t j = 0; j < 16; ++j) {
    f(j, byte(from, j) & 15);
    f(j + 16, byte(from, j) >> 4);
  }
}

void set_nibbles(GgufBlock& to, const std::byte* from) {
  each_nibble(from, [&](size_t i, int q) { set(to, i, q); });
}

/// 5-bit quants: 4 bytes with bit 4 of each element, then the nibbles.
void set_fives(GgufBlock& to, const std::byte* from) {
  each_nibble(from + 4, [&](size_t i, int q) { set(to, i, q, byte(from, i / 8) >> i % 8 & 1, 4); });
}

/// The 8 scales and minimums of 6 bits in 12 bytes of q4_k and q5_k.
void set_six_bit_scales(GgufBlock& to, const std::byte* from) {
  for (size_t j = 0; j < 4; ++j) {
    int d = byte(from, j), m = byte(from, j + 4), both = byte(from, j + 8);
    to.scales[j] = static_cast<int8_t>(d & 63);
    to.mins[j] = static_cast<int8_t>(m & 63);
    to.scales[j + 4] = static_cast<int8_t>((both & 15) | (d >> 2 & 48));
    to.mins[j + 4] = static_cast<int8_t>(both >> 4 | (m >> 2 & 48));
  }
}

/// The values of the 4-bit quants of iq4_nl and iq4_xs, plus 128.
constexpr uint8_t iq4_values[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};

}  // namespace

/// q4_0: f16 scale d, nibbles q; x = d (q - 8).
void take_apart_q4_0(const std::byte* from, GgufBlock& to) {
  set_units(to, half(from));
  set_nibbles(to, from + 2);
}

/// q4_1: f16 scale d, f16 minimum m, nibbles q; x = d q + m.
void take_apart_q4_1(const std::byte* from, GgufBlock& to) {
  set_units(to, half(from), -half(from + 2));
  set_nibbles(to, from + 4);
}

/// q5_0: f16 scale d, 5-bit q; x = d (q - 16).
void take_apart_q5_0(const std::byte* from, GgufBlock& to) {
  set_units(to, half(from));
  set_fives(to, from + 2);
}

/// q5_1: f16 scale d, f16 minimum m, 5-bit q; x = d q + m.
void take_apart_q5_1(const std::byte* from, GgufBlock& to) {
  set_units(to, half(from), -half(from + 2));
  set_fives(to, from + 4);
}

/// q8_0: f16 scale d, 32 signed bytes q; x = d q.
void take_apart_q8_0(const std::byte* from, GgufBlock& to) {
  set_units(to, half(from));
  for (size_t i = 0; i < 32; ++i) set(to, i, byte(from, 2 + i) ^ 128);
}

/// q2_k: 16 bytes of 4-bit scales (low) and minimums (high), 64 bytes of 2-bit quants, f16 units of both.
void take_apart_q2_k(const std::byte* from, GgufBlock& to) {
  for (size_t j = 0; j < 16; ++j) {
    to.scales[j] = static_cast<int8_t>(byte(from, j) & 15);
    to.mins[j] = static_cast<int8_t>(byte(from, j) >> 4);
  }
  for (size_t i = 0; i < 256; ++i) set(to, i, byte(from, 16 + i / 128 * 32 + i % 32) >> i / 32 % 4 * 2 & 3);
  to.scale_unit = half(from + 80);
  to.min_unit = half(from + 82);
}

/// q3_k: 32 bytes with bit 2 of the quants, 64 bytes with their bits 0 and 1, 12 bytes of 6-bit scales + 32, f16 unit.
void take_apart_q3_k(const std::byte* from, GgufBlock& to) {
  for (size_t i = 0; i < 256; ++i)
    set(to, i, byte(from, 32 + i / 128 * 32 + i % 32) >> i / 32 % 4 * 2 & 3, byte(from, i % 32) >> i / 32 & 1, 2);
  const std::byte* scales = from + 96;
  for (size_t j = 0; j < 16; ++j) {
    int low = byte(scales, j % 8) >> j / 8 * 4 & 15, high = byte(scales, 8 + j % 4) >> j / 4 * 2 & 3;
    to.scales[j] = static_cast<int8_t>((low | high << 4) - 32);
  }
  to.scale_unit = half(from + 108);
}

/// q4_k: f16 units of scales and minimums, 12 bytes of both, 128 bytes of nibbles, 32 low ones before 32 high ones.
void take_apart_q4_k(const std::byte* from, GgufBlock& to) {
  to.scale_unit = half(from);
  to.min_unit = half(from + 2);
  set_six_bit_scales(to, from + 4);
  for (size_t i = 0; i < 256; ++i) set(to, i, byte(from, 16 + i / 64 * 32 + i % 32) >> i / 32 % 2 * 4 & 15);
}

/// q5_k: as q4_k, with 32 bytes of bit 4 of the quants before the nibbles.
void take_apart_q5_k(const std::byte* from, GgufBlock& to) {
  to.scale_unit = half(from);
  to.min_unit = half(from + 2);
  set_six_bit_scales(to, from + 4);
  for (size_t i = 0; i < 256; ++i)
    set(to, i, byte(from, 48 + i / 64 * 32 + i % 32) >> i / 32 % 2 * 4 & 15, byte(from, 16 + i % 32) >> i / 32 & 1, 4);
}

/// q6_k: 128 bytes of nibbles, 64 low ones before 64 high ones, 64 bytes with bits 4 and 5, 16 signed scales, f16 unit.
void take_apart_q6_k(const std::byte* from, GgufBlock& to) {
  for (size_t i = 0; i < 256; ++i)
    set(to, i, byte(from, i / 128 * 64 + i % 64) >> i / 64 % 2 * 4 & 15,
        byte(from, 128 + i / 128 * 32 + i % 32) >> i / 32 % 4 * 2 & 3, 4);
  std::memcpy(to.scales, from + 192, 16);
  to.scale_unit = half(from + 208);
}

/// iq4_nl: f16 scale d, nibbles q; x = d value[q].
void take_apart_iq4_nl(const std::byte* from, GgufBlock& to) {
  set_units(to, half(from));
  each_nibble(from + 2, [&](size_t i, int q) { set(to, i, iq4_values[q]); });
}

/// iq4_xs: f16 unit, 2 and 4 bytes with the high and low bits of 8 scales + 32, then 8 times the nibbles of iq4_nl.
void take_apart_iq4_xs(const std::byte* from, GgufBlock& to) {
  to.scale_unit = half(from);
  for (size_t j = 0; j < 8; ++j) {
    int low = byte(from, 4 + j / 2) >> j % 2 * 4 & 15, high = byte(from, 2 + j / 4) >> j % 4 * 2 & 3;
    to.scales[j] = static_cast<int8_t>((low | high << 4) - 32);
    each_nibble(from + 8 + 16 * j, [&](size_t i, int q) { set(to, 32 * j + i, iq4_values[q]); });
  }
}

}  // namespace tutti
