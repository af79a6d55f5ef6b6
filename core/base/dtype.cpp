#include "core/base/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/status.h"

namespace tutti {
namespace {

struct Info {
  std::string_view name;
  size_t size;
};
constexpr std::array<Info, 9> infos{
    {{"f32", 4}, {"f64", 8}, {"f16", 2}, {"bf16", 2}, {"i32", 4}, {"i64", 8}, {"u8", 1}, {"bool", 1}, {"u32", 4}}};

// Narrowing a double to f16 or bf16 via f32 would round twice; rounding to odd (keeping the sticky bit) prevents that.
float narrow_to_odd(double x) {
  float f = static_cast<float>(x);
  if (std::isnan(f) || std::isinf(x) || static_cast<double>(f) == x) return f;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (std::isinf(f) || std::abs(static_cast<double>(f)) > std::abs(x)) --bits;  // toward zero
  return std::bit_cast<float>(bits | 1u);
}

double clamp_to(double x, double low, double high) {
  if (std::isnan(x)) return 0;
  return std::clamp(std::trunc(x), low, high) + 0.0;  // integers have no -0
}

}  // namespace

std::string_view name(DType t) { return infos[static_cast<size_t>(t)].name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (size_t i = 0; i < infos.size(); ++i)
    if (infos[i].name == text) return static_cast<DType>(i);
  return std::nullopt;
}

std::vector<DType> all_dtypes() {
  std::vector<DType> all(infos.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<DType>(i);
  return all;
}

size_t size_of(DType t) { return infos[static_cast<size_t>(t)].size; }

bool is_float(DType t) { return t == DType::f32 || t == DType::f64 || is_narrow(t); }

bool is_integer(DType t) { return t == DType::i32 || t == DType::i64 || t == DType::u8 || t == DType::u32; }

double unit_roundoff(DType t) {
  switch (t) {
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    case DType::f64: return 0x1p-53;
    default: return 0x1p-24;
  }
}

void throw_not_narrow(DType t) { throw invalid(fmt::format("{} is not a 16-bit float dtype", name(t))); }

double round_to(DType t, double x) {
  switch (t) {
    case DType::f64: return x;
    case DType::f32: return static_cast<float>(x);
    case DType::f16: return f16_to_f32(f32_to_f16(narrow_to_odd(x)));
    case DType::bf16: return bf16_to_f32(f32_to_bf16(narrow_to_odd(x)));
    case DType::i32: return clamp_to(x, -2147483648.0, 2147483647.0);
    case DType::i64: return clamp_to(x, -9223372036854775808.0, 9223372036854774784.0);
    case DType::u8: return clamp_to(x, 0, 255);
    case DType::u32: return clamp_to(x, 0, 4294967295.0);
    case DType::boolean: return x != 0;
  }
  return x;
}

double load_element(DType t, const void* data, size_t i) {
  auto get = [&](auto v) {
    std::memcpy(&v, static_cast<const char*>(data) + i * sizeof v, sizeof v);
    return v;
  };
  switch (t) {
    case DType::f64: return get(double{});
    case DType::f32: return get(float{});
    case DType::f16: return f16_to_f32(get(uint16_t{}));
    case DType::bf16: return bf16_to_f32(get(uint16_t{}));
    case DType::i32: return get(int32_t{});
    case DType::i64: return static_cast<double>(get(int64_t{}));
    case DType::u32: return get(uint32_t{});
    case DType::u8:
    case DType::boolean: return get(uint8_t{});
  }
  return 0;
}

void store_element(DType t, void* data, size_t i, double x) {
  auto put = [&](auto v) { std::memcpy(static_cast<char*>(data) + i * sizeof v, &v, sizeof v); };
  x = round_to(t, x);
  switch (t) {
    case DType::f64: return put(x);
    case DType::f32: return put(static_cast<float>(x));
    case DType::f16: return put(f32_to_f16(static_cast<float>(x)));
    case DType::bf16: return put(f32_to_bf16(static_cast<float>(x)));
    case DType::i32: return put(static_cast<int32_t>(x));
    case DType::i64: return put(static_cast<int64_t>(x));
    case DType::u32: return put(static_cast<uint32_t>(x));
    case DType::u8:
    case DType::boolean: return put(static_cast<uint8_t>(x));
  }
}

uint16_t f32_to_f16(float x) {
  uint32_t u = std::bit_cast<uint32_t>(x);
  uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) return sign | 0x7e00u;
  if (u >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
  if (u < 0x38800000u) {                        // subnormal: rounded by the addition
    float y = std::bit_cast<float>(u) + std::bit_cast<float>(0x3f000000u);
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(y) - 0x3f000000u));
  }
  uint32_t odd = (u >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((u - 0x38000000u + 0xfffu + odd) >> 13));
}

float f16_to_f32(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) {
    float y = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -y : y;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t f32_to_bf16(float x) {
  uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(u >> 16 | 0x40u);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

}  // namespace tutti
