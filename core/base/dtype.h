// Element types: names, sizes, and rounding of elements.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/abi/tutti_plugin.h"
#include "core/base/export.h"

namespace tutti {

/// Element types; the values are those of the ABI.
enum class DType : uint32_t {
  f32 = TUTTI_F32,
  f64 = TUTTI_F64,
  f16 = TUTTI_F16,
  bf16 = TUTTI_BF16,
  i32 = TUTTI_I32,
  i64 = TUTTI_I64,
  u8 = TUTTI_U8,
  boolean = TUTTI_BOOL,
  u32 = TUTTI_U32,
};

/// "f32", "bool", …
TUTTI_API std::string_view name(DType t);
/// The type of that name, or nullopt.
TUTTI_API std::optional<DType> parse_dtype(std::string_view text);
/// All types, by ascending value.
TUTTI_API std::vector<DType> all_dtypes();
/// Bytes of one element.
TUTTI_API size_t size_of(DType t);
/// f64, f32, f16 or bf16.
TUTTI_API bool is_float(DType t);
/// Floats of two bytes. Kernels compute them in f32 and round once.
inline constexpr std::array narrow_dtypes = {DType::f16, DType::bf16};
constexpr bool is_narrow(DType t) {
  for (DType n : narrow_dtypes)
    if (n == t) return true;
  return false;
}
/// Calls f(std::integral_constant<DType, t>()) where t is narrow; returns whether it is.
template <class F>
bool visit_narrow(DType t, F&& f) {
  return [&]<size_t... k>(std::index_sequence<k...>) {
    return ((t == narrow_dtypes[k] && (f(std::integral_constant<DType, narrow_dtypes[k]>()), true)) || ...);
  }
  (std::make_index_sequence<narrow_dtypes.size()>());
}
/// Half the distance from 1 to the next larger number of a float type; for all other types that of f32.
TUTTI_API double unit_roundoff(DType t);
/// i32, i64, u8 or u32.
TUTTI_API bool is_integer(DType t);

/// The nearest value of type `t` (ties to even for floats; integers truncate toward zero and clamp, NaN becomes 0;
/// bool becomes x != 0), as a double. i64 beyond 2^53 loses its low bits.
TUTTI_API double round_to(DType t, double x);
/// Reads element `i` of a row-major buffer.
TUTTI_API double load_element(DType t, const void* data, size_t i);
/// Writes round_to(t, x) to element `i`.
TUTTI_API void store_element(DType t, void* data, size_t i, double x);

TUTTI_API uint16_t f32_to_f16(float x);   ///< round to nearest even
TUTTI_API float f16_to_f32(uint16_t h);   ///< exact
TUTTI_API uint16_t f32_to_bf16(float x);  ///< round to nearest even
TUTTI_API float bf16_to_f32(uint16_t h);  ///< exact

[[noreturn]] TUTTI_API void throw_not_narrow(DType t);
/// The bits of a narrow float: round to nearest even, and back. Throws Error(invalid) for other dtypes.
inline uint16_t narrow_bits(DType t, float x) {
  switch (t) {
    case DType::f16: return f32_to_f16(x);
    case DType::bf16: return f32_to_bf16(x);
    default: throw_not_narrow(t);
  }
}
inline float narrow_value(DType t, uint16_t bits) {
  switch (t) {
    case DType::f16: return f16_to_f32(bits);
    case DType::bf16: return bf16_to_f32(bits);
    default: throw_not_narrow(t);
  }
}

}  // namespace tutti
