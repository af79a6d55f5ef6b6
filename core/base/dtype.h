// Element types: their names, sizes and how one element is rounded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/abi/tutti_plugin.h"
#include "core/base/export.h"

namespace tutti {

/// Element types; the numbers are the ABI's.
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
/// The type with that name, or nothing.
TUTTI_API std::optional<DType> parse_dtype(std::string_view text);
/// Bytes of one element.
TUTTI_API size_t size_of(DType t);
/// f64, f32, f16 or bf16.
TUTTI_API bool is_float(DType t);
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

}  // namespace tutti
