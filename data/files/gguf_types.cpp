#include "data/files/gguf_types.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/dtype.h"
#include "data/files/gguf_blocks.h"

namespace tutti {
namespace {

template <class T>
T load(const std::byte* from) {
  T x;
  std::memcpy(&x, from, sizeof(T));
  return x;
}

float half(const std::byte* from) { return f16_to_f32(load<uint16_t>(from)); }

void from_f32(const std::byte* from, size_t count, float* to) {
  if (count > 0) std::memcpy(to, from, count * sizeof(float));
}

void from_f16(const std::byte* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = half(from + 2 * i);
}

void from_bf16(const std::byte* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = bf16_to_f32(load<uint16_t>(from + 2 * i));
}

// 5-bit and 6-bit quants and those with a table are kept with 8 bits, 2-bit and 3-bit ones with 4.
constexpr QuantForm four{.bits = 4}, eight{.bits = 8};
constexpr QuantForm four_nested{.bits = 4, .group = 32, .nested = true},
    four_16{.bits = 4, .group = 16, .nested = true};
constexpr QuantForm eight_nested{.bits = 8, .group = 32, .nested = true},
    eight_16{.bits = 8, .group = 16, .nested = true};

constexpr std::array types = {GgufType{0, "f32", 1, 4, from_f32},
                              GgufType{1, "f16", 1, 2, from_f16},
                              GgufType{2, "q4_0", 32, 18, nullptr, take_apart_q4_0, four, 8},
                              GgufType{3, "q4_1", 32, 20, nullptr, take_apart_q4_1, four, 0, true},
                              GgufType{6, "q5_0", 32, 22, nullptr, take_apart_q5_0, eight, 16},
                              GgufType{7, "q5_1", 32, 24, nullptr, take_apart_q5_1, eight, 0, true},
                              GgufType{8, "q8_0", 32, 34, nullptr, take_apart_q8_0, eight, 128},
                              GgufType{10, "q2_k", 256, 84, nullptr, take_apart_q2_k, four_16, 0, true},
                              GgufType{11, "q3_k", 256, 110, nullptr, take_apart_q3_k, four_16, 4},
                              GgufType{12, "q4_k", 256, 144, nullptr, take_apart_q4_k, four_nested, 0, true},
                              GgufType{13, "q5_k", 256, 176, nullptr, take_apart_q5_k, eight_nested, 0, true},
                              GgufType{14, "q6_k", 256, 210, nullptr, take_apart_q6_k, eight_16, 32},
                              GgufType{15, "q8_k", 256, 292},
                              GgufType{16, "iq2_xxs", 256, 66},
                              GgufType{17, "iq2_xs", 256, 74},
                              GgufType{18, "iq3_xxs", 256, 98},
                              GgufType{19, "iq1_s", 256, 50},
                              GgufType{20, "iq4_nl", 32, 18, nullptr, take_apart_iq4_nl, eight, 128},
                              GgufType{21, "iq3_s", 256, 110},
                              GgufType{22, "iq2_s", 256, 82},
                              GgufType{23, "iq4_xs", 256, 136, nullptr, take_apart_iq4_xs, eight_nested, 128},
                              GgufType{24, "i8", 1, 1},
                              GgufType{25, "i16", 1, 2},
                              GgufType{26, "i32", 1, 4},
                              GgufType{27, "i64", 1, 8},
                              GgufType{28, "f64", 1, 8},
                              GgufType{29, "iq1_m", 256, 56},
                              GgufType{30, "bf16", 1, 2, from_bf16},
                              GgufType{34, "tq1_0", 256, 54},
                              GgufType{35, "tq2_0", 256, 66},
                              GgufType{39, "mxfp4", 32, 17},
                              GgufType{40, "nvfp4", 64, 36},
                              GgufType{41, "q1_0", 128, 18}};

}  // namespace

void GgufType::read(const std::byte* from, size_t count, float* to) const {
  if (to_floats) return to_floats(from, count, to);
  GgufBlock b;
  const auto group = static_cast<size_t>(form.group);
  for (size_t n = 0; n < count; ++n, from += bytes) {
    take_apart(from, b);
    for (size_t first = 0; first < block; first += group) {
      const float scale = b.scale_unit * b.scales[first / group], min = b.min_unit * b.mins[first / group];
      for (size_t i = first; i < first + group; ++i, ++to) {
        const float x = scale * static_cast<float>(b.quants[i] - zero);
        *to = has_min ? x - min : x;
      }
    }
  }
}

std::span<const GgufType> all_gguf_types() { return types; }

const GgufType* find_gguf_type(uint32_t number) {
  const auto* at = std::ranges::find(types, number, &GgufType::number);
  return at == types.end() ? nullptr : at;
}

std::string readable_gguf_types() {
  std::string list;
  for (const GgufType& t : types)
    if (t.can_be_read()) list += (list.empty() ? "" : ", ") + std::string(t.name);
  return list;
}

}  // namespace tutti
